/**
 * Mail that came in. A mail and its event are one commit: there is no mail without its event, and no event without it.
 */
import { type AppParts, command } from "millrace";
import { shape } from "./shape.ts";

interface Mail {
  mailId: string;
  from: string;
  subject: string;
  text: string;
}

export function mailOf({ collection, event }: AppParts) {
  const mails = collection<Mail>("mails");
  const received = event("Email.Received", shape({ mailId: "text", from: "text", subject: "text", text: "text" }));
  return {
    commands: {
      // A sender that names the mail's id may deliver it twice.
      "Inbox.Receive": command(
        shape({ mailId: "text?", from: "text", subject: "text", text: "text?" }),
        ({ mailId = "", ...rest }, tx) => {
          const mail: Mail = { text: "", ...rest, mailId: mailId || tx.newId() };
          if (tx.get(mails.at(mail.mailId)) === undefined) {
            tx.set(mails.at(mail.mailId), mail);
            tx.emit(received, mail);
          }
          return { mailId: mail.mailId };
        },
      ),
    },
    queries: { "Inbox.List": () => ({ mails: mails.all().map(({ value }) => value) }) },
    events: { received },
  };
}
