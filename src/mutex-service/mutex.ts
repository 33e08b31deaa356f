import { LostError, type Box, type Grant } from '../index.js'

/** What a {@link Mutex} is made of. */
export interface MutexParts {
  readonly box: Box
  readonly grant: Grant
  readonly lockId: string
  readonly log: ((line: string) => void) | undefined
}

/** A mutex that this caller has, until it is disposed of or lost. */
export class Mutex implements AsyncDisposable {
  readonly key: string
  /** A UUID that no other lock ever had. Who looks at the holders sees it as the label. */
  readonly lockId: string
  readonly #parts: MutexParts
  #released = false

  constructor(parts: MutexParts) {
    this.key = parts.grant.keys[0]!
    this.lockId = parts.lockId
    this.#parts = parts
  }

  /** The fencing number: greater than that of every earlier holder. */
  get token(): bigint {
    return this.#parts.grant.token
  }

  /** Aborts when the mutex is lost, at the end of its lease at the latest. */
  get signal(): AbortSignal {
    return this.#parts.grant.signal
  }

  /** Passes while the mutex is certainly held. @throws LostError from then on. */
  assertHeld(): void {
    this.#parts.grant.assertHeld()
  }

  /**
   * Gives the mutex back if it is this caller's still. A second call does nothing.
   * @throws LostError when it was lost before, and then its next holder keeps it; UnavailableError, IndeterminateError
   */
  async release(): Promise<void> {
    if (this.#released) return
    this.#released = true
    const { grant, lockId, log } = this.#parts
    try {
      await grant.release()
    } catch (error) {
      if (log && error instanceof LostError) log(deleted(lockId, await this.#holder()))
      throw error
    }
    // It was released on condition that it had this id.
    log?.(deleted(lockId, lockId))
  }

  /** Releases at the end of an `await using` block, whose result or error it leaves as it is. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.release().catch(() => undefined)
  }

  /** The lock id of the present holder, if it is known. */
  async #holder(): Promise<string> {
    const { box } = this.#parts
    try {
      for await (const { holders } of box.inspect(this.key, { exact: true }))
        if (holders.length > 0) return holders[0]!.label ?? 'unknown'
      return 'none'
    } catch {
      return 'unknown'
    }
  }
}

function deleted(expected: string, actual: string): string {
  return `delete key : lock_id expect=${expected} actual=${actual}`
}
