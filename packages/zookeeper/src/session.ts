import { OPCODE, type Call, type OperationOptions } from './call.js'
import { toBytes } from './calls.js'
import { after, now } from './clock.js'
import { connectToAny } from './connecting.js'
import type { Connection, ConnectionOptions } from './connection.js'
import { milliseconds } from './duration.js'
import {
  AuthFailedError,
  ClosedError,
  NUMBERS,
  ProtocolError,
  refusal,
  SessionExpiredError,
  UnreachableError,
} from './errors.js'
import { Heartbeat } from './heartbeat.js'
import type { Host } from './hosts.js'
import { JuteReader } from './jute-reader.js'
import { JuteWriter } from './jute-writer.js'
import { keepProcessAlive, letProcessEnd } from './keep-alive.js'
import { Requests } from './requests.js'
import { SessionProof } from './session-proof.js'
import type { WatchListener } from './watch-event.js'
import { Watches, type ServerEvent } from './watches.js'

/**
 * The state of a session: `suspended` while no server is connected and it may still live. `expired` and `closed` are
 * final.
 */
export type SessionState = 'connecting' | 'connected' | 'suspended' | 'expired' | 'closed'

/** The checked options of a session. */
export interface SessionOptions extends ConnectionOptions {
  /** The caller's argument, for messages. */
  readonly ensemble: string
  /** The path to which the client's paths are relative; '' for none. */
  readonly chroot: string
  readonly hosts: readonly Host[]
  /** The requested timeout, in milliseconds. */
  readonly sessionTimeout: number
}

/** Credentials with which the client has authenticated. */
interface Credential {
  readonly scheme: string
  readonly data: Uint8Array
}

const XID = { notification: -1, ping: -2, auth: -4, setWatches: -8 } as const
const EVENT_TYPES: readonly (ServerEvent | undefined)[] = [
  undefined,
  'created',
  'deleted',
  'changed',
  'children',
]
/** Maximum time until a server confirms the end of a session, in milliseconds. */
const CLOSE_TIMEOUT = 1000
const PING = new JuteWriter(8).int(XID.ping).int(OPCODE.ping).frame()

/**
 * One session of an ensemble, over one connection after another. It never becomes another session: when it has expired,
 * all its ephemeral nodes are deleted, and an application that continues creates a new client.
 */
export class Session implements AsyncDisposable {
  readonly #options: SessionOptions
  readonly #watches = new Watches()
  readonly #proof = new SessionProof()
  readonly #requests: Requests
  readonly #heartbeat: Heartbeat
  readonly #credentials: Credential[] = []
  readonly #authenticating: { resolve: () => void; reject: (error: Error) => void }[] = []
  readonly #stateListeners = new Set<(state: SessionState) => void>()
  #state: SessionState = 'connecting'
  #connection: Connection | undefined
  #id = 0n
  #password: Uint8Array = new Uint8Array(16)
  #timeout: number
  #zxid = 0n
  /** Ends the attempts to connect. */
  readonly #over = new AbortController()
  #ending: Error | undefined
  /** The error of operations after `close` was called. */
  #closing: Error | undefined
  #closed: Promise<void> | undefined

  protected constructor(options: SessionOptions) {
    this.#options = options
    this.#timeout = options.sessionTimeout
    this.#requests = new Requests(options.ensemble, options.chroot, this.#proof)
    this.#heartbeat = new Heartbeat(this.#proof, {
      ping: () => this.#connection!.send(PING),
      ask: (call, answered) => this.#requests.sendOwn(call, answered),
      onSilent: () => this.#connection!.end(new Error('the server stopped answering')),
      onExpired: () => this.#expire('no leader answered within its timeout'),
    })
  }

  get state(): SessionState {
    return this.#state
  }

  /** The session's ID. */
  get sessionId(): bigint {
    return this.#id
  }

  /** The timeout that server and client agreed on, in milliseconds. */
  get sessionTimeout(): number {
    return this.#timeout
  }

  /** The ID of the newest transaction that this client has seen. */
  get zxid(): bigint {
    return this.#zxid
  }

  /**
   * The time for which the session certainly lives from now on, in milliseconds; 0 or less if it may have ended. No
   * server deletes the session's nodes before that. Only changes extend it, including a transaction of checks, because
   * a server that has lost its leader still answers for a while. See {@link keepCertain}.
   */
  get certainFor(): number {
    return this.#ending ? -Infinity : this.#proof.certainUntil - now()
  }

  /**
   * Keeps {@link certainFor} between one and two thirds of the session's timeout while the servers are reachable, or
   * stops doing so. This costs the servers a check, which changes nothing, every third of the timeout.
   */
  keepCertain(isKept: boolean): void {
    this.#heartbeat.isKeptCertain = isKept
  }

  /** Resolves when {@link certainFor} is above 0. Rejects with the error that ended the session. */
  async certain(): Promise<void> {
    if (this.#ending) throw this.#ending
    keepProcessAlive()
    try {
      await this.#heartbeat.certain()
    } finally {
      letProcessEnd()
    }
  }

  /** Number of watched paths; a path counts once for each kind of watch. */
  get watched(): number {
    return this.#watches.size
  }

  /** Calls `listener` at each change of state, until the returned function is called. */
  onState(listener: (state: SessionState) => void): () => void {
    this.#stateListeners.add(listener)
    return () => this.#stateListeners.delete(listener)
  }

  /**
   * Authenticates with every server from now on, in addition to earlier credentials. If a server rejects them, the
   * session ends, as ZooKeeper specifies.
   */
  async authenticate(scheme: string, data: string | Uint8Array): Promise<void> {
    const credential = { scheme, data: toBytes('auth data', data) }
    if (this.#ending) throw this.#ending
    this.#credentials.push(credential)
    if (this.#connection) await this.#authenticate(this.#connection, credential)
  }

  /**
   * Ends the session. Its ephemeral nodes are deleted at once if a server is connected, else after its timeout. Never
   * throws.
   */
  close(): Promise<void> {
    return (this.#closed ??= this.#close())
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  /**
   * Connects for the first time.
   * @param timeout maximum time, in milliseconds.
   * @throws UnreachableError with the last cause; then the session has ended
   */
  protected async start(timeout: number): Promise<void> {
    const until = now() + timeout
    const connected = new Promise<void>((resolve, reject) => {
      const timer = after(timeout, () => this.#end('closed', this.#unreachable(timeout)), true)
      const forget = this.onState(state => {
        timer.cancel()
        forget()
        if (state === 'connected') resolve()
        else reject(this.#ending!)
      })
    })
    void this.#connect(() => (this.#id === 0n ? until : this.#heartbeat.livesUntil))
    await connected
  }

  /**
   * Executes an operation. Rejects with RefusedError, ConnectionLossError, NotSentError, or the error that ended the
   * session.
   * @throws InvalidArgumentError if the timeout is invalid
   */
  protected submit<T>(call: Call<T>, { timeout, suspended = 'wait' }: OperationOptions = {}): Promise<T> {
    const limit = timeout === undefined ? this.#timeout : milliseconds('timeout', timeout)
    const over = this.#ending ?? this.#closing
    if (over) return Promise.reject(over)
    if (suspended === 'fail' && this.#state !== 'connected')
      return Promise.reject(this.#requests.notSent(call, 'no server is connected'))
    return this.#requests.submit(call, limit)
  }

  /**
   * Removes a listener here and on the server. Its request may still be running.
   * @param removal an operation that removes all watches at that path
   */
  protected removeWatch(path: string, listener: WatchListener, removal: Call<unknown>): void {
    this.#watches.remove(path, listener)
    const coming = this.#requests.watchingAt(path)
    const own = coming.filter(({ call }) => call.watch!.listener === listener)
    for (const request of own) request.isUnwatched = true
    // Removing it on the server would also remove watches that other listeners need. A server that is connected later
    // does not know it.
    const isNeeded = this.#watches.has(path) || own.length < coming.length
    const isKnown = own.length > 0 || this.#state === 'connected'
    if (!isNeeded && isKnown) this.submit(removal).catch(() => undefined)
  }

  async #close(): Promise<void> {
    if (this.#ending) return
    const closed = new ClosedError('the ZooKeeper client was closed', { ensemble: this.#options.ensemble })
    if (this.#connection) {
      const confirmed = this.submit(CLOSE, { timeout: CLOSE_TIMEOUT }).catch(() => undefined)
      this.#closing = closed
      // The server replies, and closes the connection.
      await confirmed
    }
    this.#end('closed', closed)
  }

  /** Connects to one server after another, as long as the session may live. */
  async #connect(until: () => number): Promise<void> {
    const connection = await connectToAny(this.#options.hosts, this.#options, {
      hello: () => ({
        zxid: this.#zxid,
        timeout: this.#timeout,
        session: this.#id,
        password: this.#password,
      }),
      until,
      onFailure: error => {
        this.#requests.lastFailure = error
        const { cause } = error as Error
        if (cause instanceof AuthFailedError) this.#rejectedCredentials(cause)
      },
      signal: this.#over.signal,
    })
    if (connection) this.#welcomed(connection)
  }

  #welcomed(connection: Connection): void {
    const { welcome, askedAt } = connection
    if (this.#ending) return connection.end(this.#ending)
    if (welcome.timeout <= 0) {
      connection.end(new Error('the session has expired'))
      return this.#expire('the server reported that it has expired')
    }
    this.#heartbeat.welcomed(askedAt, welcome.timeout, this.#id === 0n)
    this.#id = welcome.session
    this.#password = welcome.password
    this.#timeout = welcome.timeout
    this.#connection = connection
    this.#state = 'connected'
    connection.attach({
      onFrame: frame => this.#received(frame),
      onClose: cause => this.#disconnected(connection, cause),
    })
    if (this.#connection !== connection) return
    // Credentials come first, and watches before operations, so that no event in between is missed.
    for (const credential of this.#credentials)
      void this.#authenticate(connection, credential).catch(() => undefined)
    for (const frame of this.#watches.requests(XID.setWatches, this.#zxid, this.#options.chroot))
      connection.send(frame)
    this.#requests.connected(connection)
    this.#heartbeat.begin()
    this.#changed()
    // Servers do not report missed events to persistent watches.
    for (const { path, listener } of this.#watches.persistent())
      callListener(listener, { type: 'changed', path })
  }

  #disconnected(connection: Connection, cause: Error): void {
    if (this.#connection !== connection) return
    this.#connection = undefined
    for (const { reject } of this.#authenticating.splice(0)) reject(cause)
    if (this.#ending) return
    this.#state = 'suspended'
    this.#heartbeat.disconnected()
    this.#requests.disconnected(cause)
    this.#heartbeat.check()
    if (this.#ending) return
    this.#changed()
    if (!this.#ending) void this.#connect(() => this.#heartbeat.livesUntil)
  }

  #received(frame: Buffer): void {
    const reader = new JuteReader(frame, this.#options.chroot)
    const xid = reader.int()
    const zxid = reader.long()
    const number = reader.int()
    this.#heartbeat.received()
    if (zxid > this.#zxid) this.#zxid = zxid
    switch (xid) {
      case XID.notification:
        return this.#notified(reader)
      case XID.ping:
        return this.#heartbeat.pinged()
      case XID.auth:
        return this.#authenticated(number)
      case XID.setWatches:
        if (number !== 0) throw new ProtocolError(`the server refused to set watches again: code ${number}`)
        return
      default:
        return this.#answered(xid, number, reader)
    }
  }

  #answered(xid: number, number: number, reader: JuteReader): void {
    const request = this.#requests.next(xid)
    const { call, early, isUnwatched } = request
    if (number === NUMBERS.sessionExpired) {
      // The server has rejected this request like any other. It does not report the outcome of the requests after it.
      this.#requests.shift()
      this.#expire('the server reported that it has expired')
      request.reject(this.#ending!)
      return
    }
    const isMissing = number === NUMBERS.noNode && call.mayBeMissing === true
    // Decoded while it counts as unanswered: a request whose reply can't be read must not wait forever.
    const answer = number === 0 ? call.read(reader) : undefined
    this.#requests.shift()
    this.#heartbeat.answered(request, number === 0)
    if (number !== 0 && !isMissing) {
      request.reject(refusal(call.name, call.path, number))
      return
    }
    if (call.watch && !isUnwatched) {
      const { kind, listener } = call.watch
      const isLasting = kind === 'persistent' || kind === 'recursive'
      if (!early || isLasting) this.#watches.add({ ...call.watch, kind: isMissing ? 'exist' : kind })
      if (early) callListener(listener, early)
    }
    request.resolve(answer)
  }

  #notified(reader: JuteReader): void {
    const type = EVENT_TYPES[reader.int()]
    reader.int()
    const path = reader.path()
    if (!type) return
    const event = { type, path }
    // A server may send an event before it has answered the request that set the watch.
    for (const request of this.#requests.watchingAt(path)) request.early = event
    for (const listener of this.#watches.take(type, path)) callListener(listener, event)
  }

  async #authenticate(connection: Connection, { scheme, data }: Credential): Promise<void> {
    connection.send(new JuteWriter().int(XID.auth).int(OPCODE.auth).int(0).text(scheme).bytes(data).frame())
    await new Promise<void>((resolve, reject) => this.#authenticating.push({ resolve, reject }))
  }

  #authenticated(number: number): void {
    const waiting = this.#authenticating.shift()
    if (number === 0) return waiting?.resolve()
    const error = refusal('auth', '/', NUMBERS.authFailed)
    waiting?.reject(error)
    this.#rejectedCredentials(error)
  }

  /** Ends the session, because other servers would reject the credentials, too. */
  #rejectedCredentials(cause: Error): void {
    const { ensemble } = this.#options
    this.#end(
      'closed',
      new UnreachableError("the ZooKeeper server rejected this client's credentials", { ensemble, cause }),
    )
  }

  #expire(why: string): void {
    const about = { ensemble: this.#options.ensemble, cause: this.#requests.lastFailure }
    this.#end('expired', new SessionExpiredError(`the ZooKeeper session has expired: ${why}`, about))
  }

  #end(state: 'expired' | 'closed', why: Error): void {
    if (this.#ending) return
    this.#ending = why
    this.#state = state
    this.#over.abort()
    this.#heartbeat.end(why)
    this.#connection?.end(why)
    this.#connection = undefined
    this.#requests.end(why)
    for (const { reject } of this.#authenticating.splice(0)) reject(why)
    for (const { path, listener } of this.#watches.takeAll())
      callListener(listener, { type: 'ended', path, cause: why })
    this.#changed()
  }

  #changed(): void {
    for (const listener of [...this.#stateListeners]) callListener(listener, this.#state)
  }

  #unreachable(timeout: number): UnreachableError {
    const { ensemble } = this.#options
    const { lastFailure: cause } = this.#requests
    const last = cause instanceof Error ? `: ${cause.message}` : ''
    return new UnreachableError(
      `timed out after ${timeout} ms connecting to a ZooKeeper server of ${ensemble}${last}`,
      { ensemble, cause },
    )
  }
}

const CLOSE: Call<undefined> = {
  name: 'close',
  opcode: OPCODE.closeSession,
  path: '/',
  repeatable: false,
  write: () => undefined,
  read: () => undefined,
}

/** Calls a listener. An exception is thrown separately, so that it does not affect other listeners. */
function callListener<T>(listener: (argument: T) => void, what: T): void {
  try {
    listener(what)
  } catch (error) {
    setImmediate(() => {
      throw error
    })
  }
}
