/**
 * The certificate of a server, which is taken from its files again when they have changed. Connections that are open
 * keep the old one. SPEC: W92.
 */
import { readFileSync, statSync } from "node:fs";
import type { Server } from "node:https";
import { createSecureContext } from "node:tls";
import type { Host, Timer } from "../host/host.ts";
import { TLS_LOOK_MS } from "../limits.ts";

/** A certificate with its chain, and its private key, as PEM. */
export interface TlsFiles {
  readonly certFile: string;
  readonly keyFile: string;
}

export function secretsIn({ certFile, keyFile }: TlsFiles) {
  return { cert: readFileSync(certFile), key: readFileSync(keyFile), minVersion: "TLSv1.2" as const };
}

export interface TlsCertificateParts {
  readonly host: Host;
  readonly files: TlsFiles;
  readonly server: Server;
}

export class TlsCertificate {
  readonly #parts: TlsCertificateParts;
  /** Of the files that are in use, or were found to be bad. */
  #changedAt: string;
  #timer: Timer;

  constructor(parts: TlsCertificateParts) {
    this.#parts = parts;
    this.#changedAt = changedAt(parts.files);
    this.#timer = this.#lookLater();
  }

  reload(): void {
    const { files, server } = this.#parts;
    this.#changedAt = changedAt(files);
    const secrets = secretsIn(files);
    // Throws if the key is not that of the certificate.
    createSecureContext(secrets);
    server.setSecureContext(secrets);
  }

  stop(): void {
    this.#timer.cancel();
  }

  #lookLater(): Timer {
    const { host, files } = this.#parts;
    const look = () => {
      try {
        if (changedAt(files) !== this.#changedAt) this.reload();
      } catch (error) {
        // A half-written pair: the old one is kept, and the next look tries again if the files change.
        host.report(error, `the certificate ${files.certFile}`);
      }
      this.#timer = this.#lookLater();
    };
    return host.timer(TLS_LOOK_MS, look, { keepAlive: false });
  }
}

function changedAt({ certFile, keyFile }: TlsFiles): string {
  return [certFile, keyFile].map((file) => statSync(file).mtimeMs).join(" ");
}
