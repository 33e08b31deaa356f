import type { Clock, Timer } from '../../clock.js'
import type { Hint } from '../../engine/kit/state-engine.js'
import { Reconnector } from '../../engine/kit/reconnector.js'
import { TickBatcher } from '../../engine/kit/tick-batcher.js'
import { arrayText, SqlError, type Listening, type Query, type SqlClient } from './clients/sql-client.js'
import type { Statements } from './statements.js'

/** How long a box waits for a message to itself before it counts as deaf: milliseconds. */
const TEST_TIME = 1000
/** And a moment more. */
const GRACE = 50
/** A test follows when nothing was received for so long: milliseconds. */
const TEST_INTERVAL = 1500
/** Maximum number of tests that have to pass after one that has not. */
const MAX_NEEDED = 15
/** The server takes messages of less than 8000 bytes. */
const MAX_BYTES = 7900
const TEST = 'test'

interface Job {
  readonly session: string
  readonly line: string
  readonly done: () => void
}

/** What a box is notified of by others. */
export interface Hearer {
  heard(hint: Hint): void
  /** Hints may have been lost. */
  missed(): void
  /** Whether hints are of use now. Hearing is tested only then. */
  listens(): boolean
}

/**
 * Hints by NOTIFY. They travel in a transaction of their own, those of a tick together: a transaction that notifies
 * commits alone in the whole server. A box listens from when it first has a use for hints, and tests all the time
 * whether it receives any: a connection can be dead and say nothing, or be a pooler's that changes servers.
 */
export class Hints {
  readonly #sql: SqlClient
  readonly #statements: Statements
  readonly #clock: Clock
  readonly #hearer: Hearer
  readonly #listening: Reconnector<Listening>
  readonly #batcher = new TickBatcher<Job>(() => this.#send())
  #session = ''
  #isStarted = false
  #hasListened = false
  #isDeaf = true
  /** How many tests in a row have passed, and have to, before the box no longer counts as deaf. */
  #passed = 0
  #needed = 1
  /** When a message was last received: clock time. */
  #seenAt = -Infinity
  /** Ends the test that is under way. */
  #tested: (() => void) | undefined
  #next: Timer | undefined

  constructor(sql: SqlClient, statements: Statements, hearer: Hearer, clock: Clock) {
    this.#sql = sql
    this.#statements = statements
    this.#hearer = hearer
    this.#clock = clock
    this.#listening = new Reconnector(() => this.#listen(), clock)
  }

  /** Whether nothing is received, as far as is known. */
  get isDeaf(): boolean {
    return this.#isDeaf
  }

  open(session: string): void {
    this.#session = session
  }

  /** Listens from now on. */
  start(): void {
    if (this.#isStarted || this.#listening.isClosed) return
    this.#isStarted = true
    const listening = this.#listening.get()
    if (listening instanceof Promise) listening.catch(() => this.#listening.connectSoon())
    this.#testLater(TEST_INTERVAL)
  }

  /** Settles when the hint is sent, or can't be. */
  tell(session: string, { type, about }: Hint): Promise<void> {
    return new Promise(done => this.#batcher.add({ session, line: `${type} ${about}`, done }))
  }

  /** Sends a hint when a transaction of the caller's commits. */
  async tellWithin(query: Query, session: string, { type, about }: Hint): Promise<void> {
    await query(this.#statements.notify, [channelOf(session), lineOf(`${type} ${about}`)])
  }

  async close(): Promise<void> {
    this.#next?.cancel()
    await this.#batcher.idle()
    this.#tested?.()
    await (await this.#listening.close())?.stop()
  }

  async #listen(): Promise<Listening> {
    // It may end before it is known here.
    let isLost = false
    let lost = (): unknown => (isLost = true)
    const listening = await this.#sql.listen(
      channelOf(this.#session),
      message => this.#heard(message),
      () => lost(),
    )
    if (isLost) throw new SqlError('the connection was lost', undefined, false, undefined)
    lost = () => {
      this.#isDeaf = true
      this.#listening.lost(listening)
    }
    if (this.#hasListened) this.#hearer.missed()
    this.#hasListened = true
    this.#test(listening)
    return listening
  }

  #testLater(pause: number): void {
    this.#next?.cancel()
    this.#next = this.#clock.after(
      pause,
      () => {
        const listening = this.#listening.now
        const isDue = this.#isDeaf || this.#clock.now() - this.#seenAt >= TEST_INTERVAL
        if (listening && isDue && this.#hearer.listens()) this.#test(listening)
        else this.#testLater(TEST_INTERVAL)
      },
      false,
    )
  }

  /** Finds out whether a message arrives. A connection that has received some and brings no more is given up. */
  #test(listening: Listening): void {
    if (this.#tested) return
    // After a stall of the process the message may be there, and is read before the second timer.
    let timer = this.#clock.after(
      TEST_TIME,
      () => {
        timer = this.#clock.after(GRACE, () => over(false), false)
      },
      false,
    )
    const over = (isHeard: boolean): void => {
      if (this.#tested !== end) return
      this.#tested = undefined
      timer.cancel()
      const hasHeard = this.#seenAt > -Infinity
      if (!isHeard) {
        this.#isDeaf = true
        this.#seenAt = -Infinity
        this.#passed = 0
        // Behind a pooler one now and then arrives by chance.
        this.#needed = Math.min(2 * this.#needed + 1, MAX_NEEDED)
        if (hasHeard && this.#listening.lost(listening)) listening.stop().catch(() => undefined)
      }
      if (!this.#listening.isClosed) this.#testLater(TEST_INTERVAL)
    }
    const end = (): void => over(true)
    this.#tested = end
    this.#sql
      .query(this.#statements.tell, [arrayText([channelOf(this.#session)]), arrayText([TEST])])
      .catch(() => undefined)
  }

  #heard(message: string): void {
    this.#seenAt = this.#clock.now()
    if (message === TEST) return this.#passedTest()
    for (const line of message.split('\n')) {
      const space = line.indexOf(' ')
      const type = line.slice(0, space)
      if (type === 'missed') this.#hearer.missed()
      if (type === 'lost' || type === 'changed' || type === 'wake')
        this.#hearer.heard({ type, about: line.slice(space + 1) })
    }
  }

  #passedTest(): void {
    this.#tested?.()
    if (!this.#isDeaf || ++this.#passed < this.#needed) return
    this.#isDeaf = false
    this.#hearer.missed()
  }

  async #send(): Promise<void> {
    const jobs = this.#batcher.take()
    const channels: string[] = []
    const messages: string[] = []
    for (const { session, line } of jobs) {
      channels.push(channelOf(session))
      messages.push(lineOf(line))
    }
    await this.#sql
      .query(this.#statements.tell, [arrayText(channels), arrayText(messages)])
      // A waiter that gets no hint looks by itself.
      .catch(() => undefined)
    for (const { done } of jobs) done()
  }
}

/** What can be sent: a key with a line break in it, or too long a one, can't be. */
function lineOf(line: string): string {
  return Buffer.byteLength(line) < MAX_BYTES && !line.includes('\n') ? line : 'missed '
}

function channelOf(session: string): string {
  return `signalbox ${session}`
}
