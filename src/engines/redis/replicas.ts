import type { CommandLine } from './clients/command-line.js'
import type { Reply } from './clients/command-line.js'
import type { Answered } from './clients/redis-link.js'

/** How long replicas may take to have what they must: milliseconds. */
const PATIENCE = 1000

/** Why what was done may be lost with the server. */
export interface Missed {
  readonly why: string
  readonly cause?: unknown
}

/** Whether enough replicas have what servers have done. */
export class Replicas {
  readonly #least: number
  readonly #questions = new WeakMap<CommandLine, Questions>()

  /** @param least so many replicas are enough. */
  constructor(least: number) {
    this.#least = least
  }

  /** Waits until enough replicas have what was written with this answer, and says why not when they have not. */
  async missed({ line, epoch }: Answered): Promise<Missed | undefined> {
    const least = this.#least
    try {
      const reached = Number(await this.#ask(line))
      if (reached < least) return { why: `only ${reached} of ${least} replicas had it within ${PATIENCE} ms` }
      // A server answers for what came over the connection on which it is asked.
      if (line.epoch === epoch) return undefined
      return { why: `the connection broke before it was known whether ${least} replicas have it` }
    } catch (cause) {
      return { why: `it is not known whether ${least} replicas have it`, cause }
    }
  }

  #ask(line: CommandLine): Promise<Reply> {
    let questions = this.#questions.get(line)
    if (!questions) this.#questions.set(line, (questions = new Questions(line, this.#least)))
    return questions.ask()
  }
}

/**
 * What is asked over one line: one question at a time. The server carries out nothing else that comes over the line until
 * it has answered, so all calls that have to ask meanwhile share the next question.
 */
class Questions {
  readonly #line: CommandLine
  readonly #words: readonly string[]
  /** Settles when the question that is under way is answered. */
  #asked: Promise<unknown> = Promise.resolve()
  #next: Promise<Reply> | undefined

  constructor(line: CommandLine, least: number) {
    this.#line = line
    this.#words = ['WAIT', String(least), String(PATIENCE)]
  }

  ask(): Promise<Reply> {
    this.#next ??= this.#asked.then(() => {
      this.#next = undefined
      const answer = this.#line.send(this.#words)
      this.#asked = answer.catch(() => undefined)
      return answer
    })
    return this.#next
  }
}
