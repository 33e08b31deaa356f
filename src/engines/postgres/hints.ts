import type { Clock, Timer } from '../../base/clock.js'
import type { Hint } from '../../engine/kit/state-engine.js'
import { Reconnector } from '../../engine/kit/reconnector.js'
import { TickBatcher } from '../../engine/kit/tick-batcher.js'
import { SqlError, type Listening, type SqlClient } from './clients/sql-client.js'
import type { Statements } from './statements.js'

/** Maximum time until a box receives its test message, and for the reply of a connection, in milliseconds. */
const TEST_TIMEOUT = 1000
/** Time without a reply after which a connection is given up, in milliseconds. */
const DEAD_AFTER = 5000
/** Extra time for a message that arrived during a stall of the process, in milliseconds. */
const GRACE = 50
/** Time after the last message or reply until the next test, in milliseconds. */
const TEST_INTERVAL = 1500
/** Maximum number of tests that must pass after one has failed. */
const MAX_NEEDED = 15
/** Maximum size of a payload, in bytes. The server accepts less than 8000. */
const MAX_BYTES = 7900
const TEST = 'test'
/** The channels on which the session of the connection listens, as JSON. A pooler may have given it another session. */
const CHANNELS =
  "select coalesce(pg_catalog.json_agg(c), '[]')::pg_catalog.text from pg_catalog.pg_listening_channels() c"

interface Job {
  readonly session: string
  readonly line: string
  readonly done: () => void
}

/** Receives hints from other boxes. */
export interface HintReceiver {
  onHint(hint: Hint): void
  /** Called when hints may have been lost. */
  onMissed(): void
  /** Whether hints are of use now. Only then is it tested whether they arrive. */
  wantsHints(): boolean
}

/**
 * Sends and receives hints by NOTIFY. The server commits transactions that notify one at a time, so the hints of a tick
 * are sent together, in a transaction of their own. A box starts to listen when it first needs hints. A message to
 * itself shows that hints get through. From then on, it only asks the connection whether it still listens, because each
 * message would wake every process that listens in the database. The connection can be dead without an error, or a
 * pooler can switch its server.
 */
export class Hints {
  readonly #sql: SqlClient
  readonly #statements: Statements
  readonly #clock: Clock
  readonly #receiver: HintReceiver
  readonly #listening: Reconnector<Listening>
  readonly #batcher = new TickBatcher<Job>(() => this.#send())
  #session = ''
  #isStarted = false
  #hasListened = false
  #isReceiving = false
  /** Number of tests in a row that have passed, and number that must pass before the box relies on hints again. */
  #passed = 0
  #needed = 1
  /** The clock time at which a message was last received, or the connection was last found to listen. */
  #seenAt = -Infinity
  /** Ends the current test successfully. */
  #tested: (() => void) | undefined
  #next: Timer | undefined

  constructor(sql: SqlClient, statements: Statements, receiver: HintReceiver, clock: Clock) {
    this.#sql = sql
    this.#statements = statements
    this.#receiver = receiver
    this.#clock = clock
    this.#listening = new Reconnector(() => this.#listen(), clock)
  }

  /** Whether hints arrive, as far as is known. */
  get isReceiving(): boolean {
    return this.#isReceiving
  }

  open(session: string): void {
    this.#session = session
  }

  /** Starts to listen. */
  start(): void {
    if (this.#isStarted || this.#listening.isClosed) return
    this.#isStarted = true
    const listening = this.#listening.get()
    if (listening instanceof Promise) listening.catch(() => this.#listening.connectSoon())
    this.#testLater(TEST_INTERVAL)
  }

  /** Resolves when the hint is sent, or has failed. */
  send(session: string, { type, about }: Hint): Promise<void> {
    return new Promise(done => this.#batcher.add({ session, line: `${type} ${about}`, done }))
  }

  async close(): Promise<void> {
    this.#next?.cancel()
    await this.#batcher.idle()
    this.#tested?.()
    await (await this.#listening.close())?.stop()
  }

  async #listen(): Promise<Listening> {
    // The connection may be lost before this call knows it.
    let isLost = false
    let lost = (): unknown => (isLost = true)
    const channel = channelOf(this.#session)
    const listening = await this.#sql.listen(
      channel,
      (message, to) => to === channel && this.#receive(message),
      () => lost(),
    )
    if (isLost) throw new SqlError('the connection was lost', undefined, false, undefined)
    lost = () => {
      this.#isReceiving = false
      this.#listening.lost(listening)
    }
    if (this.#hasListened) this.#receiver.onMissed()
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
        const isDue = !this.#isReceiving || this.#clock.now() - this.#seenAt >= TEST_INTERVAL
        if (!listening || !isDue || !this.#receiver.wantsHints()) this.#testLater(TEST_INTERVAL)
        else if (this.#isReceiving) this.#check(listening)
        else this.#test(listening)
      },
      false,
    )
  }

  /** Tests whether a message arrives. Drops a connection that has delivered messages and no longer does. */
  #test(listening: Listening): void {
    if (this.#tested) return
    const late = this.#afterStall(TEST_TIMEOUT, () => over(false))
    const over = (hasArrived: boolean): void => {
      if (this.#tested !== end) return
      this.#tested = undefined
      late.cancel()
      if (!hasArrived) this.#doubt(listening, this.#seenAt > -Infinity)
      if (!this.#listening.isClosed) this.#testLater(TEST_INTERVAL)
    }
    const end = (): void => over(true)
    this.#tested = end
    void this.#sendNotices([channelOf(this.#session)], [TEST])
  }

  /** Asks a connection that has delivered messages whether it still listens. Drops it if not. */
  #check(listening: Listening): void {
    const isCurrent = (): boolean => this.#listening.now === listening
    const late = this.#afterStall(TEST_TIMEOUT, () => {
      if (isCurrent()) this.#isReceiving = false
    })
    const dead = this.#afterStall(DEAD_AFTER, () => over(false))
    let isOver = false
    const over = (listens: boolean): void => {
      if (isOver) return
      isOver = true
      late.cancel()
      dead.cancel()
      if (!isCurrent()) return
      if (listens) this.#heard()
      else this.#doubt(listening, true)
      this.#testLater(TEST_INTERVAL)
    }
    listening.query(CHANNELS, []).then(
      answer => over((JSON.parse(answer as string) as unknown[]).includes(channelOf(this.#session))),
      () => over(false),
    )
  }

  /** Stops relying on hints until enough tests have passed. @param drops whether to listen over a new connection */
  #doubt(listening: Listening, drops: boolean): void {
    this.#isReceiving = false
    this.#seenAt = -Infinity
    this.#passed = 0
    // Behind a pooler, a message can arrive by chance.
    this.#needed = Math.min(2 * this.#needed + 1, MAX_NEEDED)
    if (drops && this.#listening.lost(listening)) listening.stop(true).catch(() => undefined)
  }

  #heard(): void {
    this.#seenAt = this.#clock.now()
    if (this.#isReceiving) return
    this.#isReceiving = true
    // mutant: hints-again-without-look
    this.#receiver.onMissed()
  }

  /** Calls a task later. After a stall of the process, messages that have arrived meanwhile are read first. */
  #afterStall(delay: number, task: () => void): Timer {
    let timer = this.#clock.after(delay, () => (timer = this.#clock.after(GRACE, task, false)), false)
    return { cancel: () => timer.cancel() }
  }

  #receive(message: string): void {
    this.#seenAt = this.#clock.now()
    if (message === TEST) return this.#passedTest()
    for (const line of message.split('\n')) {
      const space = line.indexOf(' ')
      const type = line.slice(0, space)
      if (type === 'missed') this.#receiver.onMissed()
      if (type === 'lost' || type === 'changed' || type === 'wake')
        this.#receiver.onHint({ type, about: line.slice(space + 1) })
    }
  }

  #passedTest(): void {
    this.#tested?.()
    if (this.#isReceiving || ++this.#passed >= this.#needed) this.#heard()
  }

  async #send(): Promise<void> {
    const jobs = this.#batcher.take()
    const channels: string[] = []
    const messages: string[] = []
    for (const { session, line } of jobs) {
      channels.push(channelOf(session))
      messages.push(lineOf(line))
    }
    await this.#sendNotices(channels, messages)
    for (const { done } of jobs) done()
  }

  /** Sends messages, each to one channel. Never rejects: a waiter that misses its hint checks by itself. */
  async #sendNotices(channels: readonly string[], messages: readonly string[]): Promise<void> {
    const { text, values } = this.#statements.sendNotices
    await this.#sql.query(text, values({ channels, payloads: messages })).catch(() => undefined)
  }
}

/** Returns the line, or a general hint if the line can't be sent: the key is too long, or has a line break. */
function lineOf(line: string): string {
  return Buffer.byteLength(line) < MAX_BYTES && !line.includes('\n') ? line : 'missed '
}

function channelOf(session: string): string {
  return `signalbox ${session}`
}
