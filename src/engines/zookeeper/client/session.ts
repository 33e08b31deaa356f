import type { Clock, Timer } from '../../../clock.js'
import { ClosedError, InvalidArgumentError, UnavailableError, type SignalboxError } from '../../../errors.js'
import { isLed, isWrite, OPCODE, type Call, type NewWatch } from './call.js'
import { Connection, type ConnectionOptions } from './connection.js'
import {
  AuthFailedError,
  ConnectionLossError,
  NotSentError,
  NUMBERS,
  ProtocolError,
  refusal,
  SessionExpiredError,
} from './errors.js'
import { LONGEST_REQUEST } from './frames.js'
import { addressesOf, type Host } from './hosts.js'
import { JuteReader } from './jute-reader.js'
import { JuteWriter } from './jute-writer.js'
import { multi } from './multi.js'
import { without } from './paths.js'
import { SessionProof } from './session-proof.js'
import type { WatchEvent, WatchListener } from './watch-event.js'
import { Watches, type Told } from './watches.js'

/**
 * How a session stands: `suspended` while no server is connected and it may live on; `expired` and `closed` for ever.
 */
export type SessionState = 'connecting' | 'connected' | 'suspended' | 'expired' | 'closed'

/** What a session is made of, checked. */
export interface SessionOptions extends ConnectionOptions {
  /** For messages. */
  readonly name: string
  /** What is before the paths that listeners know; '' for nothing. */
  readonly chroot: string
  readonly hosts: readonly Host[]
  /** What is asked for: milliseconds. */
  readonly sessionTimeout: number
  readonly clock: Clock
}

/** How one operation is sent. */
export interface Sending {
  /** Until when an answer is of use: milliseconds from now. Default: the session's timeout. */
  readonly timeout?: number | undefined
  /** What becomes of it while no server is connected. Default: it waits. */
  readonly suspended?: 'wait' | 'fail' | undefined
}

/** An operation on its way. */
interface Entry {
  readonly call: Call<unknown>
  /** With room for the xid, which is another one on each connection. */
  readonly frame: Buffer
  readonly resolve: (answer: unknown) => void
  readonly reject: (error: Error) => void
  xid: number
  /** Clock time. */
  sentAt: number
  /** What its answer proves: see SessionProof. */
  heardBefore: number
  reported: number
  isSettled: boolean
  timer: Timer | undefined
  /** An event that came before the answer, for the watch that comes with it. */
  early: WatchEvent | undefined
  /** Whether nobody wants the watch any more that comes with the answer. */
  isUnwatched: boolean
}

/** Who has authenticated how. */
interface Credential {
  readonly scheme: string
  readonly data: Buffer
}

const XID = { notification: -1, ping: -2, auth: -4, setWatches: -8 } as const
const LAST_XID = 2 ** 31 - 1
const TOLD: readonly (Told | undefined)[] = [undefined, 'created', 'deleted', 'changed', 'children']
/**
 * A connection that leaves the leader's answer out for this part of the timeout is given up, so that there is time to
 * find another server before what is held is not certain any more.
 */
const SILENT_FOR = 1 / 4
/** The pauses between rounds of connecting: milliseconds. */
const FIRST_PAUSE = 20
const LONGEST_PAUSE = 1000
/** One server has so long to welcome a client, in the first round and at the least: milliseconds. */
const FIRST_PATIENCE = 1000
const LEAST_PATIENCE = 100
/** The part of the time left that one server gets, so that there is time to say what was wrong. */
const PATIENT_FOR = 0.9
/** How long a server may take to confirm the end of a session: milliseconds. */
const CLOSE_PATIENCE = 1000
const PING = new JuteWriter(8).int(XID.ping).int(OPCODE.ping).frame()

/**
 * One session of an ensemble, over one connection after the other. It never becomes another one: when it has expired,
 * whoever wants to go on starts a new one and knows that all its ephemeral nodes are gone.
 */
export class Session {
  readonly #options: SessionOptions
  readonly #clock: Clock
  readonly #watches = new Watches()
  readonly #credentials: Credential[] = []
  readonly #stateListeners = new Set<(state: SessionState) => void>()
  #state: SessionState = 'connecting'
  #connection: Connection | undefined
  #id = 0n
  #password: Uint8Array = new Uint8Array(16)
  #timeout: number
  #zxid = 0n
  #xid = 0
  /** Sent and not answered, in the order of the answers to come. */
  readonly #sent: Entry[] = []
  #firstSent = 0
  /** Not sent yet, in order. */
  #queue: Entry[] = []
  /** Of those sent, the ones that leave a watch. */
  readonly #watching = new Set<Entry>()
  readonly #authenticating: { resolve: () => void; reject: (error: Error) => void }[] = []
  readonly #proof = new SessionProof()
  #isKeptCertain = false
  readonly #uncertain: { resolve: () => void; reject: (error: Error) => void }[] = []
  /** When the last request was sent that the leader has answered, and what came last: clock time. */
  #ledAt = 0
  #heardAt = 0
  /** When the beat was sent that is not over yet, and when the next one is due: clock time. */
  #beatSentAt: number | undefined
  #beatAt = 0
  #pingedAt: number | undefined
  #timer: Timer | undefined
  #ending: Error | undefined
  /** What is asked for after the end of the session was asked for gets this. */
  #closing: Error | undefined
  #closed: Promise<void> | undefined
  #failure: unknown
  #unsettled = 0
  #alive: Timer | undefined
  #wakeUp: (() => void) | undefined

  constructor(options: SessionOptions) {
    this.#options = options
    this.#clock = options.clock
    this.#timeout = options.sessionTimeout
  }

  get state(): SessionState {
    return this.#state
  }

  /** 0 before the first connection. */
  get id(): bigint {
    return this.#id
  }

  /** What server and client agreed on: milliseconds. */
  get timeout(): number {
    return this.#timeout
  }

  /** The newest change that this session has seen the effects of. */
  get zxid(): bigint {
    return this.#zxid
  }

  /** Until when the session lives for certain: clock time. Each change that is carried out may put it off. */
  get certainUntil(): number {
    return this.#ending ? -Infinity : this.#proof.certainUntil
  }

  /** Whether `certainUntil` is put off as long as the session lives, by a check each third of the timeout. */
  set isKeptCertain(isKept: boolean) {
    this.#isKeptCertain = isKept
  }

  /** How many paths are watched. */
  get watched(): number {
    return this.#watches.size
  }

  /** Calls `listener` at each change of state, until the returned function is called. */
  onState(listener: (state: SessionState) => void): () => void {
    this.#stateListeners.add(listener)
    return () => this.#stateListeners.delete(listener)
  }

  /**
   * Connects for the first time.
   * @param patience how long that may take: milliseconds.
   * @throws UnavailableError with the last cause; the session has ended then
   */
  async start(patience: number): Promise<void> {
    const until = this.#clock.now() + patience
    const connected = new Promise<void>((resolve, reject) => {
      const timer = this.#clock.after(patience, () => this.#end('closed', this.#unreachable(patience)), true)
      const forget = this.onState(state => {
        timer.cancel()
        forget()
        if (state === 'connected') resolve()
        else reject(this.#ending!)
      })
    })
    void this.#connect(until)
    await connected
  }

  /** Settles when the session lives for certain. Rejects with what ended it. */
  async certain(): Promise<void> {
    if (this.#ending) throw this.#ending
    if (this.#clock.now() < this.certainUntil) return
    this.#await(1)
    try {
      await new Promise<void>((resolve, reject) => this.#uncertain.push({ resolve, reject }))
    } finally {
      this.#await(-1)
    }
  }

  /** Carries out an operation. Rejects with RefusedError, ConnectionLossError, NotSentError, or what ended the session. */
  submit<T>(call: Call<T>, { timeout = this.#timeout, suspended = 'wait' }: Sending = {}): Promise<T> {
    const over = this.#ending ?? this.#closing
    if (over) return Promise.reject(over)
    if (suspended === 'fail' && this.#state !== 'connected')
      return Promise.reject(this.#notSent(call, 'no server is connected'))
    const writer = written(call)
    if (writer.size > LONGEST_REQUEST)
      return Promise.reject(
        new InvalidArgumentError(
          `${call.name} ${call.path} takes ${writer.size} bytes, and servers take ${LONGEST_REQUEST} at the most`,
          { key: call.path, engine: this.#options.name },
        ),
      )
    return new Promise<T>((resolve, reject) => {
      const entry = newEntry(call, writer.frame(), resolve as (answer: unknown) => void, reject)
      entry.timer = this.#clock.after(timeout, () => this.#overdue(entry), false)
      this.#await(1)
      if (this.#state === 'connected') this.#send(entry)
      else this.#queue.push(entry)
    })
  }

  /**
   * Tells every server from now on who this client is, too.
   * @throws AuthFailedError, which ends the session as ZooKeeper does
   */
  async authenticate(scheme: string, data: Uint8Array): Promise<void> {
    if (this.#ending) throw this.#ending
    const credential = { scheme, data: Buffer.from(data) }
    this.#credentials.push(credential)
    if (this.#state !== 'connected') return
    await this.#authenticate(credential)
  }

  /**
   * Forgets a listener, whose request may be under way, and has the server forget it, too.
   * @param path the server's
   * @param removal takes all watches at that path away
   */
  unwatch(path: string, listener: WatchListener, removal: Call<unknown>): void {
    this.#watches.remove(path, listener)
    let isWatched = this.#watches.has(path)
    let isUnderWay = false
    for (const entry of [...this.#watching, ...this.#queue]) {
      const watch = entry.call.watch?.(false)
      if (watch?.path !== path || entry.isUnwatched) continue
      if (watch.listener === listener) isUnderWay = entry.isUnwatched = true
      else isWatched = true
    }
    // The server would take away what others here listen for, too. One that is connected later knows nothing of it.
    if (isWatched || !(isUnderWay || this.#state === 'connected')) return
    this.submit(removal).catch(() => undefined)
  }

  /** Counts those who wait for something other than an operation: they keep the process alive. */
  awaits(more: 1 | -1): void {
    this.#await(more)
  }

  /** Ends the session: its ephemeral nodes go at once if a server is connected, else after its timeout. Never throws. */
  close(): Promise<void> {
    return (this.#closed ??= this.#close())
  }

  async #close(): Promise<void> {
    if (this.#ending) return
    const connection = this.#connection
    const closed = new ClosedError('the ZooKeeper client was closed', { engine: this.#options.name })
    if (!connection) {
      this.#end('closed', closed)
      return
    }
    let timer: Timer | undefined
    await new Promise<void>(resolve => {
      timer = this.#clock.after(CLOSE_PATIENCE, resolve, true)
      const forget = this.onState(() => {
        forget()
        resolve()
      })
      // The server closes the connection as its answer.
      void this.submit({ ...CLOSE, refused: () => undefined }).then(resolve, () => resolve())
      this.#closing = closed
    })
    timer?.cancel()
    this.#end('closed', closed)
  }

  #send(entry: Entry): void {
    entry.xid = this.#xid = this.#xid === LAST_XID ? 1 : this.#xid + 1
    entry.sentAt = this.#clock.now()
    entry.heardBefore = this.#proof.reportedBy(entry.sentAt)
    entry.reported = this.#proof.reported
    entry.frame.writeInt32BE(entry.xid, 4)
    this.#sent.push(entry)
    if (entry.call.watch) this.#watching.add(entry)
    this.#connection!.send(entry.frame)
  }

  #received(frame: Buffer): void {
    const reader = new JuteReader(frame)
    const xid = reader.int()
    const zxid = reader.long()
    const number = reader.int()
    this.#heardAt = this.#clock.now()
    if (zxid > this.#zxid) this.#zxid = zxid
    switch (xid) {
      case XID.notification:
        return this.#notified(reader)
      case XID.ping:
        return this.#pinged()
      case XID.auth:
        return this.#authenticated(number)
      case XID.setWatches:
        if (number !== 0) throw new ProtocolError(`the server does not set watches anew: number ${number}`)
        return
      default:
        return this.#answered(xid, number, reader)
    }
  }

  #answered(xid: number, number: number, reader: JuteReader): void {
    const entry = this.#sent[this.#firstSent]
    if (entry?.xid !== xid)
      throw new ProtocolError(`the server answers request ${xid}, and ${entry?.xid ?? 'none'} is the next`)
    if (number === NUMBERS.sessionExpired) {
      // This one was refused like any other; what became of those after it, nobody has said.
      this.#shift()
      this.#expire('the server says that it is gone')
      this.#reject(entry, this.#ending!)
      return
    }
    const { call } = entry
    // Decoded before it counts as answered: whose answer can't be read, is not to wait for ever.
    let answer: unknown
    let error: Error | undefined
    if (number === 0) answer = call.read(reader)
    else if (call.refused && isAbsence(number)) answer = call.refused(number)
    else error = refusal(call.name, call.path, number)
    this.#shift()
    this.#proves(entry, number === 0)
    this.#watching.delete(entry)
    if (!error && call.watch && !entry.isUnwatched) this.#begin(call.watch(number !== 0), entry.early)
    if (error) this.#reject(entry, error)
    else this.#settle(entry, () => entry.resolve(answer))
  }

  /** A server may refuse by itself what only the leader can carry out. */
  #proves({ call: { opcode }, sentAt, heardBefore, reported }: Entry, isCarriedOut: boolean): void {
    this.#proof.answered(sentAt, this.#heardAt)
    if (!isCarriedOut || !isLed(opcode)) return
    this.#ledAt = Math.max(this.#ledAt, sentAt)
    this.#proof.ledAnswer(heardBefore)
    if (!isWrite(opcode)) return
    this.#proof.quorumAnswer(reported)
    if (this.#heardAt < this.certainUntil) for (const { resolve } of this.#uncertain.splice(0)) resolve()
  }

  /** The queue of what was sent is cut now and then instead of at each answer. */
  #shift(): void {
    if (++this.#firstSent < 1024 && this.#firstSent < this.#sent.length) return
    this.#sent.splice(0, this.#firstSent)
    this.#firstSent = 0
  }

  #begin(watch: NewWatch, early: WatchEvent | undefined): void {
    const once = watch.kind !== 'persistent' && watch.kind !== 'recursive'
    if (!early || !once) this.#watches.add(watch)
    if (early) this.#tell(watch.listener, early)
  }

  #notified(reader: JuteReader): void {
    const type = TOLD[reader.int()]
    reader.int()
    const path = reader.text()
    if (!type) return
    const event = { type, path }
    // A server may tell of an event before it has answered the request that set the watch.
    for (const entry of this.#watching) if (entry.call.watch!(false).path === path) entry.early = event
    for (const listener of this.#watches.take(type, path)) this.#tell(listener, event)
  }

  /** What a listener throws is its owner's to find, and delays nobody else. */
  #tell(listener: WatchListener, event: WatchEvent): void {
    const { chroot } = this.#options
    try {
      listener(chroot === '' ? event : { ...event, path: without(chroot, event.path) })
    } catch (error) {
      setImmediate(() => {
        throw error
      })
    }
  }

  async #authenticate({ scheme, data }: Credential): Promise<void> {
    const connection = this.#connection!
    connection.send(new JuteWriter().int(XID.auth).int(OPCODE.auth).int(0).text(scheme).bytes(data).frame())
    await new Promise<void>((resolve, reject) => this.#authenticating.push({ resolve, reject }))
  }

  #authenticated(number: number): void {
    const waiting = this.#authenticating.shift()
    if (number === 0) return waiting?.resolve()
    const error = new AuthFailedError(
      'auth',
      '/',
      number,
      'AUTH_FAILED',
      'the server does not accept who this is',
    )
    waiting?.reject(error)
    this.#unaccepted(error)
  }

  /** Another server would not accept it either. */
  #unaccepted(cause: AuthFailedError): void {
    this.#end(
      'closed',
      new UnavailableError('the ZooKeeper server does not accept who this client is', {
        engine: this.#options.name,
        cause,
      }),
    )
  }

  /** Tries one server after the other until one welcomes the session. */
  async #connect(until: number): Promise<void> {
    for (let round = 1; !this.#ending; round *= 2) {
      const addresses = await addressesOf(this.#options.hosts).catch((error: unknown) => {
        this.#failure = error
        return []
      })
      for (const address of addresses) {
        if (this.#ending) return
        // A server without a leader accepts connections and says nothing, while another one may have found its leader.
        const left = Math.min(until, this.#deadline()) - this.#clock.now()
        const patience = Math.max(Math.min(left * PATIENT_FOR, round * FIRST_PATIENCE), LEAST_PATIENCE)
        const hello = {
          zxid: this.#zxid,
          timeout: this.#timeout,
          session: this.#id,
          password: this.#password,
        }
        const askedAt = this.#clock.now()
        try {
          const connection = await Connection.open(address, hello, patience, this.#options, this.#clock)
          this.#welcomed(connection, askedAt)
          return
        } catch (error) {
          this.#failure = error
          const { cause } = error as Error
          if (cause instanceof AuthFailedError) this.#unaccepted(cause)
        }
      }
      if (this.#ending) return
      // Together again after an outage, all clients are not to come at the same moment.
      await this.#pause(Math.min(round * FIRST_PAUSE, LONGEST_PAUSE) * (0.5 + Math.random()))
    }
  }

  #pause(duration: number): Promise<void> {
    return new Promise(resolve => {
      this.#wakeUp = resolve
      this.#clock.after(duration, resolve, false)
    })
  }

  /** By when it has to be connected: clock time. */
  #deadline(): number {
    return this.#id === 0n ? Infinity : this.#livesUntil
  }

  /** When the session is given up here: clock time. */
  get #livesUntil(): number {
    return this.#ledAt + this.#timeout
  }

  #welcomed(connection: Connection, askedAt: number): void {
    const { timeout, session, password } = connection.welcome
    if (this.#ending) return connection.end(this.#ending)
    if (timeout <= 0) {
      connection.attach({ received: () => undefined, closed: () => undefined })
      connection.end(new Error('the session is gone'))
      return this.#expire('the server says that it is gone')
    }
    this.#proof.welcomed(askedAt, timeout, this.#id === 0n)
    this.#id = session
    this.#password = password
    this.#timeout = timeout
    this.#ledAt = Math.max(this.#ledAt, askedAt)
    this.#heardAt = this.#clock.now()
    this.#beatSentAt = undefined
    this.#beatAt = askedAt + this.#proof.reportTime
    this.#xid = 0
    this.#connection = connection
    connection.isAwaited = this.#unsettled > 0
    this.#state = 'connected'
    connection.attach({
      received: frame => this.#received(frame),
      closed: cause => this.#disconnected(connection, cause),
    })
    if (this.#connection !== connection) return
    // Who this is comes first, and watches before operations, so that no event between is lost.
    for (const credential of this.#credentials) void this.#authenticate(credential).catch(() => undefined)
    for (const request of this.#watches.requests(XID.setWatches, this.#zxid)) connection.send(request)
    for (const entry of this.#queue.splice(0)) this.#send(entry)
    // The welcome is proof as soon as something is put through.
    if (this.#isKeptCertain) this.#sendBeat(CHECK)
    this.#look()
    this.#changed()
    // Persistent watches are not told what they missed.
    for (const { path, listener } of this.#watches.lasting()) this.#tell(listener, { type: 'changed', path })
  }

  #disconnected(connection: Connection, cause: Error): void {
    if (this.#connection !== connection) return
    this.#connection = undefined
    this.#failure = cause
    this.#timer?.cancel()
    this.#watching.clear()
    const sent = this.#sent.splice(0).slice(this.#firstSent)
    this.#firstSent = 0
    for (const { reject } of this.#authenticating.splice(0)) reject(cause)
    if (this.#ending) return
    const again: Entry[] = []
    for (const entry of sent) {
      entry.early = undefined
      if (entry.call.repeatable && !entry.isSettled) again.push(entry)
      else
        this.#reject(entry, this.#lost(entry.call, 'the connection was lost before its answer came', cause))
    }
    this.#queue = [...again, ...this.#queue]
    this.#state = 'suspended'
    this.#look()
    this.#changed()
    if (!this.#ending) void this.#connect(Infinity)
  }

  /** Sees to it that the leader hears of the session, and that a silent connection and the session's end are noticed. */
  #look(): void {
    this.#timer?.cancel()
    if (this.#ending) return
    const now = this.#clock.now()
    if (now >= this.#livesUntil)
      return this.#expire('nothing was heard of any leader for as long as it lasts')
    let next = this.#livesUntil
    if (this.#connection) {
      if (this.#beatSentAt === undefined && now >= this.#beatAt) this.#beat()
      const silentAt = Math.max(this.#heardAt, this.#beatSentAt ?? Infinity) + this.#timeout * SILENT_FOR
      if (now >= silentAt) return this.#connection.end(new Error('the server has fallen silent'))
      next = Math.min(next, this.#beatSentAt === undefined ? this.#beatAt : silentAt)
    }
    this.#timer = this.#clock.after(next - now, () => this.#look(), false)
  }

  /** Asks the server for a sign of life, which it gives by itself, and the leader for one. */
  #beat(): void {
    this.#pingedAt = this.#clock.now()
    this.#connection!.send(PING)
    this.#sendBeat(SYNC)
  }

  /** The next beat comes when the one before it, of which the server knows now, will have been reported. */
  #pinged(): void {
    if (this.#pingedAt === undefined) return
    this.#proof.answered(this.#pingedAt, this.#heardAt)
    this.#pingedAt = undefined
    this.#beatAt = this.#heardAt + this.#proof.reportTime
  }

  #sendBeat(call: Call<unknown>): void {
    const connection = this.#connection!
    this.#beatSentAt = this.#clock.now()
    const answered = (): void => {
      // With another connection the beat begins anew.
      if (this.#connection !== connection) return
      this.#beatSentAt = undefined
      if (call === SYNC && this.#isKeptCertain) this.#sendBeat(CHECK)
      this.#look()
    }
    this.#send(newEntry(call, written(call).frame(), answered, answered))
  }

  #expire(why: string): void {
    this.#end(
      'expired',
      new SessionExpiredError(`the ZooKeeper session has expired: ${why}`, {
        engine: this.#options.name,
        cause: this.#failure,
      }),
    )
  }

  #end(state: 'expired' | 'closed', why: Error): void {
    if (this.#ending) return
    this.#ending = why
    this.#state = state
    this.#timer?.cancel()
    this.#wakeUp?.()
    const sent = this.#sent.splice(0).slice(this.#firstSent)
    this.#firstSent = 0
    this.#connection?.end(why)
    this.#connection = undefined
    for (const entry of sent)
      this.#reject(entry, entry.call.repeatable ? why : this.#lost(entry.call, 'the session has ended', why))
    for (const entry of this.#queue.splice(0)) this.#reject(entry, why)
    for (const { reject } of this.#authenticating.splice(0)) reject(why)
    for (const { reject } of this.#uncertain.splice(0)) reject(why)
    for (const { path, listener } of this.#watches.takeAll())
      this.#tell(listener, { type: 'ended', path, cause: why })
    this.#changed()
  }

  #overdue(entry: Entry): void {
    const index = this.#queue.indexOf(entry)
    if (index >= 0) this.#queue.splice(index, 1)
    const why = 'its time was over'
    // What was sent stays in its place, because its answer may still come.
    if (entry.sentAt > 0 && !entry.call.repeatable)
      this.#reject(entry, this.#lost(entry.call, why, this.#failure))
    else this.#reject(entry, this.#notSent(entry.call, why))
  }

  #reject(entry: Entry, error: Error): void {
    this.#settle(entry, () => entry.reject(error))
  }

  #settle(entry: Entry, tell: () => void): void {
    if (entry.isSettled) return
    entry.isSettled = true
    // A beat has no caller and no timer.
    if (entry.timer) {
      entry.timer.cancel()
      this.#await(-1)
    }
    tell()
  }

  /** While anybody waits, the process stays alive. */
  #await(more: 1 | -1): void {
    this.#unsettled += more
    if (this.#unsettled > 1 || (this.#unsettled === 1 && more < 0)) return
    const isAwaited = this.#unsettled > 0
    if (this.#connection) this.#connection.isAwaited = isAwaited
    this.#alive?.cancel()
    this.#alive = isAwaited ? this.#clock.after(FOREVER, () => undefined, true) : undefined
  }

  #changed(): void {
    for (const listener of [...this.#stateListeners]) listener(this.#state)
  }

  #lost(call: Call<unknown>, why: string, cause: unknown): SignalboxError {
    return new ConnectionLossError(call.name, call.path, this.#options.name, why, cause)
  }

  #notSent(call: Call<unknown>, why: string): SignalboxError {
    return new NotSentError(call.name, call.path, this.#options.name, why, this.#failure)
  }

  #unreachable(patience: number): UnavailableError {
    const { name } = this.#options
    const last = this.#failure instanceof Error ? `: ${this.#failure.message}` : ''
    return new UnavailableError(`no ZooKeeper server of ${name} was to be had within ${patience} ms${last}`, {
      engine: name,
      cause: this.#failure,
    })
  }
}

const FOREVER = 2 ** 31 - 1

const CLOSE: Call<undefined> = {
  name: 'close',
  opcode: OPCODE.closeSession,
  path: '/',
  repeatable: false,
  write: () => undefined,
  read: () => undefined,
}

/** Is answered when the leader has been asked. */
const SYNC: Call<undefined> = {
  name: 'sync',
  opcode: OPCODE.sync,
  path: '/',
  repeatable: false,
  write: writer => writer.text('/'),
  read: () => undefined,
}

/** Is put through a quorum and changes nothing, whether the client may read that node or not. */
const CHECK = multi([
  {
    name: 'check',
    opcode: OPCODE.check,
    path: '/',
    repeatable: false,
    write: writer => writer.text('/').int(-1),
    read: () => undefined,
  },
])

/** A request, with room for the xid. */
function written(call: Call<unknown>): JuteWriter {
  const writer = new JuteWriter().int(0).int(call.opcode)
  call.write(writer)
  return writer
}

function newEntry(
  call: Call<unknown>,
  frame: Buffer,
  resolve: (answer: unknown) => void,
  reject: (error: Error) => void,
): Entry {
  return {
    call,
    frame,
    resolve,
    reject,
    xid: 0,
    sentAt: 0,
    heardBefore: 0,
    reported: 0,
    isSettled: false,
    timer: undefined,
    early: undefined,
    isUnwatched: false,
  }
}

function isAbsence(number: number): boolean {
  return number === NUMBERS.noNode
}
