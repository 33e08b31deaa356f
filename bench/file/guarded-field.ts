import type { Section } from './lock-cycles.js'

/**
 * A section that only the holder of a lock may enter, for tasks of one process. It detects two tasks inside at the same
 * time. It is a field in memory: a file takes several times as long as a lock that passes from task to task within the
 * process, so the bench would measure the file.
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
