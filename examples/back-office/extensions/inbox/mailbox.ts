/** Keeping a mail and telling of it is one commit: there is no mail without its event, and no event without it. */
import { transactional } from "millrace/loop";
import type { Space } from "millrace/signals";
import { type Shaped, shape } from "../../shape.ts";

const RECEIVE = { mailId: "text?", from: "text", subject: "text", text: "text?" } as const;
const MAIL = { mailId: "text", from: "text", subject: "text", text: "text" } as const;

export type Mail = Shaped<typeof MAIL>;

export function mailbox(space: Space) {
  const mails = space.cell<Readonly<Record<string, Mail>>>("inbox", {});
  return transactional({
    space,
    description: "mail that came in",
    emits: { "Email.Received": shape(MAIL) },
    commands: {
      "Inbox.Receive": {
        input: shape(RECEIVE),
        handle: (given: Shaped<typeof RECEIVE>, tx, message) => {
          const mail: Mail = { text: "", mailId: message.metadata.id, ...given };
          // Whoever names a mail's id may deliver it twice.
          if (tx.get(mails.key(mail.mailId)) === undefined) {
            tx.set(mails.key(mail.mailId), mail);
            tx.emit("Email.Received", mail);
          }
          return { mailId: mail.mailId };
        },
      },
    },
    queries: {
      "Inbox.List": { handle: async () => ({ mails: Object.values((await mails.pull()) ?? {}) }) },
    },
  });
}
