import { createHash, timingSafeEqual } from 'node:crypto'
import { ProtocolError } from './errors.js'

/** The user of a client, for SASL. */
export interface SaslUser {
  readonly user: string
  readonly password: string
}

/** The name of ZooKeeper's servers in this exchange, unless configured otherwise. */
const SERVICE = 'zookeeper/zk-sasl-md5'
const FIRST_TIME = '00000001'

/** One exchange of SASL's mechanism DIGEST-MD5 (RFC 2831): each side proves that it knows the password. */
export class DigestMd5 {
  readonly #login: SaslUser
  readonly #cnonce: string
  readonly #service: string
  #proof: string | undefined

  /** @param cnonce a random string. */
  constructor(login: SaslUser, cnonce: string, service = SERVICE) {
    this.#login = login
    this.#cnonce = cnonce
    this.#service = service
  }

  /** Returns the reply to the server's challenge. @throws ProtocolError if the challenge is invalid */
  answer(challenge: Buffer): Buffer {
    const said = directives(challenge)
    const nonce = said.get('nonce')
    const algorithm = said.get('algorithm')
    const qualities = (said.get('qop') ?? 'auth').split(',').map(quality => quality.trim())
    if (nonce === undefined || algorithm !== 'md5-sess' || !qualities.includes('auth'))
      throw new ProtocolError('the server requires a SASL mechanism other than DIGEST-MD5')
    const { user, password } = this.#login
    const realm = said.get('realm') ?? ''
    const secret = createHash('md5')
      .update(Buffer.concat([octets(user), octets(':'), octets(realm), octets(':'), octets(password)]))
      .digest()
    const key = hex(secret, `:${nonce}:${this.#cnonce}`)
    const response = (verb: string): string =>
      hex(`${key}:${nonce}:${FIRST_TIME}:${this.#cnonce}:auth:${hex(`${verb}:${this.#service}`)}`)
    this.#proof = response('')
    const answer = [
      'charset=utf-8',
      `username=${quoted(user)}`,
      `realm=${quoted(realm)}`,
      `nonce=${quoted(nonce)}`,
      `nc=${FIRST_TIME}`,
      `cnonce=${quoted(this.#cnonce)}`,
      `digest-uri=${quoted(this.#service)}`,
      `response=${response('AUTHENTICATE')}`,
      'qop=auth',
    ]
    return Buffer.from(answer.join())
  }

  /** Checks that the server knows the password, too. @throws ProtocolError if it does not */
  verify(last: Buffer): void {
    const proof = Buffer.from(directives(last).get('rspauth') ?? '')
    const wanted = Buffer.from(this.#proof ?? '')
    if (proof.length === 0 || proof.length !== wanted.length || !timingSafeEqual(proof, wanted))
      throw new ProtocolError('the server failed to prove that it knows the password')
  }
}

function hex(...parts: (string | Uint8Array)[]): string {
  const hash = createHash('md5')
  for (const part of parts) hash.update(part)
  return hash.digest('hex')
}

/** The bytes to hash: Latin-1 if that has all characters, as the standard requires. */
function octets(text: string): Buffer {
  // eslint-disable-next-line no-control-regex -- the range of Latin-1
  return Buffer.from(text, /^[\u0000-\u00ff]*$/.test(text) ? 'latin1' : 'utf8')
}

function quoted(text: string): string {
  return `"${text.replace(/["\\]/g, '\\$&')}"`
}

function directives(text: Buffer): Map<string, string> {
  const found = text.toString().matchAll(/([\w-]+)=(?:"((?:[^"\\]|\\.)*)"|([^,\s]*))/gs)
  return new Map([...found].map(([, name, text, word]) => [name!, text?.replace(/\\(.)/gs, '$1') ?? word!]))
}
