import type { FoundRecord, Records } from '../../../src/store/records/records.js'

/** A remote call that waits to be executed. */
interface Call {
  readonly process: number
  readonly key: string
  /** Number of this call among the calls of its process about this key. */
  readonly index: number
  /** The write; undefined for a read. */
  readonly write: { readonly over: string | undefined; readonly text: string } | undefined
  answer(reply: unknown): void
  fail(): void
}

/** A possible next event. */
export interface Choice {
  readonly name: string
  /** Whether it uses up one of the faults that a run may have. */
  readonly isFault: boolean
  readonly happen: () => void
}

/** The task of a process. It may fail. */
export type Task = (records: Records, name: string) => Promise<unknown>

/** The end of a process; undefined while it runs or if it crashed. */
export type Ending =
  | { readonly state: 'done'; readonly result: unknown }
  | { readonly state: 'failed'; readonly error: unknown }

/**
 * Processes around one store. Each remote call waits until the exploration chooses to execute it. The store compares
 * whole texts, as the weakest allowed store does: a text that occurs again is a version that occurs again.
 */
export class World {
  readonly texts: Map<string, string>
  readonly endings: (Ending | undefined)[] = []
  readonly crashed = new Set<number>()
  readonly #names: Interned
  #calls: Call[] = []
  /** Writes whose sender has given up or crashed. They may arrive at any time, or never. */
  readonly #underWay: Call[] = []
  /**
   * All replies that each process got, in any order. They determine its next calls, because its calls for one key do
   * not depend on other keys.
   */
  readonly #histories: Map<string, number>[] = []
  readonly #counts: Map<string, number>[] = []

  constructor(texts: ReadonlyMap<string, string>, tasks: readonly Task[], names: Interned) {
    this.texts = new Map(texts)
    this.#names = names
    for (const [process, task] of tasks.entries()) {
      this.#histories.push(new Map())
      this.#counts.push(new Map())
      this.endings.push(undefined)
      task(this.#recordsOf(process), `p${process}`).then(
        result => (this.endings[process] = { state: 'done', result }),
        (error: unknown) => (this.endings[process] = { state: 'failed', error }),
      )
    }
  }

  /** Lets every process continue until it waits for a call or has ended. */
  settle(): Promise<void> {
    return new Promise(resolve => setImmediate(resolve))
  }

  /** Whether no process is waiting for a call. */
  get isOver(): boolean {
    return this.#calls.length === 0
  }

  /** Returns a text that is equal for worlds that can continue in the same ways. */
  key(faults: number): string {
    const texts = [...this.texts].sort(([a], [b]) => (a < b ? -1 : 1)).map(([key, text]) => `${key}=${text}`)
    const parts = [...texts, ...this.#calls.map(title).sort(), '~', ...this.#underWay.map(title).sort()]
    const histories = this.#histories.map(history =>
      [...history]
        .map(([call, reply]) => `${call}:${reply}`)
        .sort()
        .join(),
    )
    const crashed = [...this.crashed].sort().join()
    return `${this.#names.of(parts.join('|'))};${histories.join('/')};${crashed};${faults}`
  }

  /**
   * Returns all possible next events, answered calls first. Calls that a process makes at the same time are executed in
   * the order of the calls. A crash or a lost connection leaves the rest under way.
   */
  choices(faults: 'crashes' | 'all'): Choice[] {
    const calls = this.#calls.filter(
      (call, index) => this.#calls.findIndex(({ process }) => process === call.process) === index,
    )
    calls.sort((one, other) => one.process - other.process)
    return [
      ...calls.map(call => this.#choice(`do ${title(call)}`, () => this.#execute(call, true))),
      ...this.#underWay.map(call => this.#choice(`late ${title(call)}`, () => this.#arrive(call))),
      ...calls.map(({ process }) => this.#fault(`crash p${process}`, () => this.#crash(process))),
      ...calls.flatMap(call => (faults === 'all' ? this.#faultsOf(call) : [])),
    ]
  }

  #faultsOf(call: Call): Choice[] {
    const unsent = this.#fault(`fail ${title(call)}`, () => this.#fail(call))
    if (!call.write) return [unsent]
    return [
      unsent,
      this.#fault(`unanswered ${title(call)}`, () => this.#execute(call, false)),
      this.#fault(`delay ${title(call)}`, () => {
        this.#fail(call)
        this.#underWay.push(call)
      }),
    ]
  }

  #choice(name: string, happen: () => void): Choice {
    return { name, isFault: false, happen }
  }

  #fault(name: string, happen: () => void): Choice {
    return { name, isFault: true, happen }
  }

  #execute(call: Call, isAnswered: boolean): void {
    const reply = this.#apply(call)
    if (!isAnswered) return this.#fail(call)
    this.#remember(call, JSON.stringify(reply) ?? 'nothing')
    call.answer(reply)
  }

  #apply({ key, write }: Call): unknown {
    const text = this.texts.get(key)
    if (!write) return text === undefined ? undefined : { text, version: text }
    if (text !== write.over) return undefined
    this.texts.set(key, write.text)
    return write.text
  }

  #fail(call: Call): void {
    this.#remember(call, 'failed')
    call.fail()
  }

  #remember(call: Call, reply: string): void {
    this.#calls = this.#calls.filter(other => other !== call)
    const { process, key, index } = call
    this.#histories[process]!.set(`${key}${index}`, this.#names.of(reply))
  }

  #arrive(call: Call): void {
    this.#underWay.splice(this.#underWay.indexOf(call), 1)
    this.#apply(call)
  }

  #crash(process: number): void {
    this.crashed.add(process)
    for (const call of this.#calls) if (call.process === process && call.write) this.#underWay.push(call)
    this.#calls = this.#calls.filter(call => call.process !== process)
    this.#histories[process]!.clear()
  }

  #recordsOf(process: number): Records<string> {
    const call = <T>(key: string, write: Call['write']): Promise<T> =>
      new Promise((resolve, reject) => {
        const counts = this.#counts[process]!
        const index = counts.get(key) ?? 0
        counts.set(key, index + 1)
        this.#calls.push({
          process,
          key,
          index,
          write,
          answer: reply => resolve(reply as T),
          fail: () => reject(new Error('the connection was lost')),
        })
      })
    return {
      get: key => call<FoundRecord<string> | undefined>(key, undefined),
      compareAndSet: (key, over, text) => call<string | undefined>(key, { over, text }),
    }
  }
}

function title({ process, index, key, write }: Call): string {
  const place = `p${process} ${key}${index}`
  return write ? `${place}: ${write.over ?? 'nothing'} -> ${write.text}` : `${place}?`
}

/** Maps texts to numbers, so that each long text is stored once. */
export class Interned {
  readonly #numbers = new Map<string, number>()

  of(text: string): number {
    const known = this.#numbers.get(text)
    if (known !== undefined) return known
    const number = this.#numbers.size + 1
    this.#numbers.set(text, number)
    return number
  }
}
