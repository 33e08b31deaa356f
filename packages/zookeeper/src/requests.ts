import { after, now, type Timer } from './clock.js'
import type { Call } from './call.js'
import type { Connection } from './connection.js'
import { ConnectionLossError, InvalidArgumentError, NotSentError, ProtocolError } from './errors.js'
import { MAX_REQUEST_SIZE } from './frames.js'
import { JuteWriter } from './jute-writer.js'
import type { SessionProof } from './session-proof.js'
import type { WatchEvent } from './watch-event.js'

/** An operation without a reply. */
export class Request {
  xid = 0
  /** As clock time; 0 before the request is sent. */
  sentAt = 0
  /** The clock times that its reply proves, see SessionProof. */
  answeredBefore = 0
  reported = 0
  /** An event that arrived before the reply, for the watch that the reply sets. */
  early: WatchEvent | undefined
  /** Whether the caller has removed the watch that the reply sets. */
  isUnwatched = false
  isSettled = false
  /** Ends the caller's wait, during which the process stays alive. The session's own requests have none. */
  timer: Timer | undefined
  readonly #resolve: (answer: unknown) => void
  readonly #reject: (error: Error) => void

  constructor(
    readonly call: Call<unknown>,
    /** With room for the xid, which differs on each connection. */
    readonly frame: Buffer,
    resolve: (answer: unknown) => void,
    reject: (error: Error) => void,
  ) {
    this.#resolve = resolve
    this.#reject = reject
  }

  resolve(answer: unknown): void {
    if (this.#settle()) this.#resolve(answer)
  }

  reject(error: Error): void {
    if (this.#settle()) this.#reject(error)
  }

  /** Returns false if it was settled before. */
  #settle(): boolean {
    if (this.isSettled) return false
    this.isSettled = true
    this.timer?.cancel()
    return true
  }
}

const LAST_XID = 2 ** 31 - 1

/** The operations of a session that wait for a connection or a reply, in the order of their calls. */
export class Requests {
  /** The failure of the last connection: the cause of errors. */
  lastFailure: unknown
  readonly #ensemble: string
  readonly #chroot: string
  readonly #proof: SessionProof
  #connection: Connection | undefined
  #xid = 0
  #waiting: Request[] = []
  /** The requests from `#firstSent` on have no reply. */
  #sent: Request[] = []
  #firstSent = 0

  /** @param ensemble for messages. */
  constructor(ensemble: string, chroot: string, proof: SessionProof) {
    this.#ensemble = ensemble
    this.#chroot = chroot
    this.#proof = proof
  }

  /**
   * Sends an operation as soon as there is a connection. @param timeout maximum time until the reply, in milliseconds.
   */
  submit<T>(call: Call<T>, timeout: number): Promise<T> {
    const writer = this.#written(call)
    if (writer.size > MAX_REQUEST_SIZE)
      return Promise.reject(
        new InvalidArgumentError(
          `${call.name} ${call.path} has ${writer.size} bytes; servers accept at most ${MAX_REQUEST_SIZE}`,
          { path: call.path, ensemble: this.#ensemble },
        ),
      )
    return new Promise<T>((resolve, reject) => {
      const request = new Request(call, writer.frame(), resolve as (answer: unknown) => void, reject)
      request.timer = after(timeout, () => this.#overdue(request), true)
      if (this.#connection) this.#send(request, this.#connection)
      else this.#waiting.push(request)
    })
  }

  /** Sends a request of the session itself. @param settled called when it has a reply or is lost. */
  sendOwn(call: Call<unknown>, settled: () => void): void {
    this.#send(new Request(call, this.#written(call).frame(), settled, settled), this.#connection!)
  }

  /** Sends all waiting and further requests over this connection. */
  connected(connection: Connection): void {
    this.#connection = connection
    this.#xid = 0
    for (const request of this.#waiting.splice(0)) this.#send(request, connection)
  }

  /**
   * Handles the loss of the connection. Repeatable requests wait for the next one. The others may have been applied,
   * and are rejected.
   */
  disconnected(cause: Error): void {
    this.lastFailure = cause
    const again: Request[] = []
    for (const request of this.#detach()) {
      request.early = undefined
      if (request.call.repeatable && !request.isSettled) again.push(request)
      else request.reject(this.#lost(request.call, 'the connection was lost before the reply', cause))
    }
    this.#waiting = [...again, ...this.#waiting]
  }

  /** Rejects all requests, because the session has ended. */
  end(why: Error): void {
    for (const request of this.#detach())
      request.reject(request.call.repeatable ? why : this.#lost(request.call, 'the session has ended', why))
    for (const request of this.#waiting.splice(0)) request.reject(why)
  }

  /**
   * Returns the request that the next reply belongs to, without removing it.
   * @throws ProtocolError if the reply is for another one
   */
  next(xid: number): Request {
    const request = this.#sent[this.#firstSent]
    if (request?.xid !== xid)
      throw new ProtocolError(`the server answered request ${xid}, but ${request?.xid ?? 'none'} is the next`)
    return request
  }

  /** Removes the request that {@link next} returned. */
  shift(): void {
    // Cutting the array at each reply would cost more than keeping up to 1024 finished requests.
    if (++this.#firstSent < 1024 && this.#firstSent < this.#sent.length) return
    this.#sent.splice(0, this.#firstSent)
    this.#firstSent = 0
  }

  /** Requests that will set a watch at a path. */
  watchingAt(path: string): Request[] {
    const all = [...this.#unanswered, ...this.#waiting]
    return all.filter(({ call, isUnwatched }) => call.watch?.path === path && !isUnwatched)
  }

  /** Returns the error of an operation that was certainly not applied. */
  notSent(call: Call<unknown>, why: string): NotSentError {
    return new NotSentError(call.name, call.path, this.#ensemble, why, this.lastFailure)
  }

  get #unanswered(): Request[] {
    return this.#sent.slice(this.#firstSent)
  }

  #lost(call: Call<unknown>, why: string, cause: unknown): ConnectionLossError {
    return new ConnectionLossError(call.name, call.path, this.#ensemble, why, cause)
  }

  #send(request: Request, connection: Connection): void {
    request.xid = this.#xid = this.#xid === LAST_XID ? 1 : this.#xid + 1
    request.sentAt = now()
    request.answeredBefore = this.#proof.reportedBy(request.sentAt)
    request.reported = this.#proof.reported
    request.frame.writeInt32BE(request.xid, 4)
    this.#sent.push(request)
    connection.send(request.frame)
  }

  /** Removes the connection. Returns the requests that were sent and have no reply. */
  #detach(): Request[] {
    const sent = this.#unanswered
    this.#sent = []
    this.#firstSent = 0
    this.#connection = undefined
    return sent
  }

  #overdue(request: Request): void {
    const index = this.#waiting.indexOf(request)
    if (index >= 0) this.#waiting.splice(index, 1)
    const why = 'it timed out'
    // A request that was sent stays in its place, because its reply may still come.
    if (request.sentAt > 0 && !request.call.repeatable)
      request.reject(this.#lost(request.call, why, this.lastFailure))
    else request.reject(this.notSent(request.call, why))
  }

  #written(call: Call<unknown>): JuteWriter {
    const writer = new JuteWriter(256, this.#chroot).int(0).int(call.opcode)
    call.write(writer)
    return writer
  }
}
