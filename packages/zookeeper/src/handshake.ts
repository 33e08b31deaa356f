import { randomBytes } from 'node:crypto'
import { OPCODE } from './call.js'
import { DigestMd5, type SaslUser } from './digest-md5.js'
import { NUMBERS, ProtocolError, refusal } from './errors.js'
import { JuteReader } from './jute-reader.js'
import { JuteWriter } from './jute-writer.js'

/** The session that a client requests. */
export interface Hello {
  /** The last change that the client has seen. A server that is behind it rejects the client. */
  readonly zxid: bigint
  /** In milliseconds. The server adjusts it to its own bounds. */
  readonly timeout: number
  /** 0 for a new session. */
  readonly session: bigint
  readonly password: Uint8Array
}

/** The session that a server grants. */
export interface Welcome {
  /** In milliseconds; 0 if the session has expired. */
  readonly timeout: number
  readonly session: bigint
  readonly password: Buffer
}

/** The first exchange on a connection: the session, then authentication by SASL. */
export class Handshake {
  /** The server's reply to the hello. */
  welcome: Welcome | undefined
  /** The reason why the handshake has not completed. */
  stage = 'timed out connecting'
  readonly #hello: Hello
  readonly #exchange: DigestMd5 | undefined
  #hasAnsweredChallenge = false

  constructor(hello: Hello, sasl: SaslUser | undefined) {
    this.#hello = hello
    this.#exchange = sasl && new DigestMd5(sasl, randomBytes(16).toString('hex'))
  }

  /** Returns the first frame to send. */
  begin(): Buffer {
    this.stage = 'timed out waiting for the server to welcome the client'
    const { zxid, timeout, session, password } = this.#hello
    return new JuteWriter().int(0).long(zxid).int(timeout).long(session).bytes(password).bool(false).frame()
  }

  /**
   * Returns the reply to a frame of the server; undefined at the end of the handshake.
   * @throws AuthFailedError if the server rejects the client's credentials; ProtocolError
   */
  next(frame: Buffer): Buffer | undefined {
    if (this.welcome) return this.#nextOfLogin(frame)
    this.welcome = readWelcome(frame)
    if (!this.#exchange || this.welcome.timeout <= 0) return undefined
    this.stage = 'timed out waiting for the server to check the credentials'
    return saslFrame(new Uint8Array(0))
  }

  #nextOfLogin(frame: Buffer): Buffer | undefined {
    const reader = new JuteReader(frame)
    reader.int()
    reader.long()
    const token = reader.int() === 0 ? reader.bytes() : undefined
    if (!token?.length) throw refusal('sasl', '/', NUMBERS.authFailed)
    if (!this.#hasAnsweredChallenge) {
      this.#hasAnsweredChallenge = true
      return saslFrame(this.#exchange!.answer(token))
    }
    this.#exchange!.verify(token)
    return undefined
  }
}

function saslFrame(token: Uint8Array): Buffer {
  return new JuteWriter().int(1).int(OPCODE.sasl).bytes(token).frame()
}

/** Reads the welcome. Old servers omit the last field, which says whether the server is read-only. */
function readWelcome(frame: Buffer): Welcome {
  const reader = new JuteReader(frame)
  const version = reader.int()
  if (version !== 0) throw new ProtocolError(`the server speaks an unknown protocol or version (${version})`)
  return { timeout: reader.int(), session: reader.long(), password: reader.bytes() }
}
