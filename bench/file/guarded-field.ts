import type { Section } from './lock-cycles.js'

/**
 * What only the holder of a lock may touch where all tasks are of one process: it finds out when two do. It is a field
 * in memory, because passing through a file takes several times as long as a lock that is handed on in the process, and
 * the bench would measure the file.
 */
export class GuardedField implements Section {
  #isTaken = false
  #lastToken = 0n

  enter(token: bigint | undefined): string | undefined {
    if (this.#isTaken) return 'a task was inside when another came in'
    this.#isTaken = true
    if (token === undefined) return undefined
    const last = this.#lastToken
    this.#lastToken = token
    return token <= last ? `token ${token} was given after token ${last}` : undefined
  }

  leave(): string | undefined {
    if (!this.#isTaken) return 'a task left after another had come in'
    this.#isTaken = false
    return undefined
  }
}
