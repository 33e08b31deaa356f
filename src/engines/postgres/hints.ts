import type { Clock } from '../../clock.js'
import type { Hint } from '../../engine/kit/state-engine.js'
import { Reconnector } from '../../engine/kit/reconnector.js'
import { TickBatcher } from '../../engine/kit/tick-batcher.js'
import { arrayText, SqlError, type Listening, type Query, type SqlClient } from './clients/sql-client.js'
import type { Row } from './rows.js'
import type { Statements } from './statements.js'

/** How long a box waits for its own message to find out whether it hears any: milliseconds. */
const TEST_TIME = 1000
/** The server takes messages of less than 8000 bytes. */
const MOST_BYTES = 7900
const TEST = 'test'

interface Job {
  readonly session: string
  readonly line: string
  readonly done: () => void
}

/** What a box is told by others. */
export interface Hearer {
  heard(hint: Hint): void
  /** What a row has become with which the hint that follows has to do. */
  told(id: number, version: number, data: string): void
  /** Hints may have been lost. */
  missed(): void
}

/**
 * Hints by NOTIFY. They travel in a transaction of their own, those of a tick together: a transaction that notifies
 * commits alone in the whole server.
 */
export class Hints {
  readonly #sql: SqlClient
  readonly #statements: Statements
  readonly #clock: Clock
  readonly #hearer: Hearer
  readonly #listening: Reconnector<Listening>
  readonly #batcher = new TickBatcher<Job>(() => this.#send())
  #session = ''
  #tested: (() => void) | undefined
  #isDeaf = false

  constructor(sql: SqlClient, statements: Statements, hearer: Hearer, clock: Clock) {
    this.#sql = sql
    this.#statements = statements
    this.#hearer = hearer
    this.#clock = clock
    this.#listening = new Reconnector(() => this.#listen(), clock)
  }

  /** Whether nothing is heard, as behind a pooler that gives each transaction another connection. */
  get isDeaf(): boolean {
    return this.#isDeaf
  }

  async open(session: string): Promise<void> {
    this.#session = session
    await this.#listening.get()
    this.#isDeaf = !(await this.#hearsItself())
  }

  /**
   * Settles when the hint is sent, or can't be.
   * @param row goes along if there is room, so that the box that is told need not ask for it. Only boxes know the name
   * of its channel.
   */
  tell(session: string, { type, about }: Hint, row?: Row): Promise<void> {
    const line = `${type} ${about}`
    const more = row && `${line} ${row.id} ${row.version} ${row.data}`
    return new Promise(done =>
      this.#batcher.add({ session, line: more && isShort(more) ? more : line, done }),
    )
  }

  /** Sends a hint when a transaction of the caller's commits. */
  async tellWithin(query: Query, session: string, { type, about }: Hint): Promise<void> {
    await query(this.#statements.notify, [channelOf(session), lineOf(`${type} ${about}`)])
  }

  async close(): Promise<void> {
    await this.#batcher.idle()
    await (await this.#listening.close())?.stop()
  }

  async #listen(): Promise<Listening> {
    const isAgain = this.#tested !== undefined
    // It may end before it is known here.
    let isLost = false
    let lost = (): unknown => (isLost = true)
    const listening = await this.#sql.listen(
      channelOf(this.#session),
      message => this.#heard(message),
      () => lost(),
    )
    if (isLost) throw new SqlError('the connection was lost', undefined, false, undefined)
    lost = () => this.#listening.lost(listening)
    if (isAgain) this.#hearer.missed()
    return listening
  }

  async #hearsItself(): Promise<boolean> {
    const heard = new Promise<boolean>(resolve => {
      const timer = this.#clock.after(TEST_TIME, () => resolve(false), true)
      this.#tested = () => {
        timer.cancel()
        resolve(true)
      }
    })
    await this.#sql.query(this.#statements.tell, [arrayText([channelOf(this.#session)]), arrayText([TEST])])
    return heard
  }

  #heard(message: string): void {
    if (message === TEST) {
      // On a busy server it may come late.
      this.#isDeaf = false
      return this.#tested?.()
    }
    for (const line of message.split('\n')) {
      const space = line.indexOf(' ')
      const type = line.slice(0, space)
      if (type === 'missed') this.#hearer.missed()
      if (type === 'lost' || type === 'changed') this.#hearer.heard({ type, about: line.slice(space + 1) })
      if (type === 'wake') this.#woken(line.slice(space + 1).split(' '))
    }
  }

  #woken([about, id, version, ...data]: string[]): void {
    if (id !== undefined) this.#hearer.told(Number(id), Number(version), data.join(' '))
    this.#hearer.heard({ type: 'wake', about: about! })
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

/** What can be told: a key with a line break in it, or too long a one, can't be. */
function lineOf(line: string): string {
  return isShort(line) && !line.includes('\n') ? line : 'missed '
}

function isShort(line: string): boolean {
  return Buffer.byteLength(line) < MOST_BYTES
}

function channelOf(session: string): string {
  return `signalbox ${session}`
}
