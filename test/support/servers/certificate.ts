import { execFileSync } from 'node:child_process'
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** A certificate for `localhost` and 127.0.0.1 that its own key has signed, in a folder that the caller removes. */
export interface Certificate {
  readonly folder: string
  readonly certificate: string
  readonly key: string
}

export function makeCertificate(): Certificate {
  const folder = mkdtempSync(join(tmpdir(), 'signalbox-certificate-'))
  const made = { folder, certificate: join(folder, 'certificate.pem'), key: join(folder, 'key.pem') }
  const options =
    'req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost ' +
    '-addext subjectAltName=DNS:localhost,IP:127.0.0.1'
  const argv = [...options.split(' '), '-keyout', made.key, '-out', made.certificate]
  execFileSync('openssl', argv, { stdio: 'ignore' })
  return made
}
