/** Mail that came in. Keeping a mail and telling of it is one commit: there is no mail without its event, and no event without it. */
import { type Space, transactional } from "millrace";
import { shape } from "./shape.ts";

const MAIL = { from: "text", subject: "text", text: "text?" } as const;

interface Mail {
  readonly from: string;
  readonly subject: string;
  readonly text?: string;
}

export function inbox(space: Space) {
  const mails = space.cell<Readonly<Record<string, Mail>>>("inbox");
  return transactional({
    space,
    description: "mail that came in",
    emits: { "Email.Received": shape({ mailId: "text", ...MAIL }) },
    commands: {
      "Inbox.Receive": {
        input: shape(MAIL),
        handle: (mail: Mail, tx, message) => {
          const mailId = message.metadata.id;
          if (tx.get(mails) === undefined) tx.set(mails, {});
          tx.set(mails.key(mailId), mail);
          tx.emit("Email.Received", { mailId, ...mail });
          return { mailId };
        },
      },
    },
    queries: {
      "Inbox.List": {
        handle: async () => ({
          mails: Object.entries((await mails.pull()) ?? {}).map(([mailId, mail]) => ({ mailId, ...mail })),
        }),
      },
    },
  });
}
