import type { LockRequest } from 'signalbox/engine'

/**
 * The requests of this box that are leaving their keys. The entries that this box knows still contain them, but its
 * next requests can be granted as if they were gone.
 */
export class Leaving {
  readonly #requests = new Map<string, Promise<unknown>>()
  /** The last commit with each key, until it is decided. */
  readonly #deciding = new Map<string, Promise<unknown>>()

  /** Whether a request is about to leave all of its keys. */
  has(id: string): boolean {
    return this.#requests.has(id)
  }

  /** Settles when a request has left all of its keys; undefined if it is not about to. */
  left(id: string): Promise<unknown> | undefined {
    return this.#requests.get(id)
  }

  /** Records that a request leaves its keys until this settles. */
  until<T>({ id }: LockRequest, left: Promise<T>): Promise<T> {
    this.#requests.set(id, left)
    const over = (): void => void this.#requests.delete(id)
    left.then(over, over)
    return left
  }

  /** Records that a commit leaves these keys as soon as this settles. */
  deciding(keys: readonly string[], decision: Promise<unknown>): void {
    for (const key of keys) this.#deciding.set(key, decision)
    const over = (): void => {
      for (const key of keys) if (this.#deciding.get(key) === decision) this.#deciding.delete(key)
    }
    decision.then(over, over)
  }

  /** Settles when the commits under way with these keys are decided; undefined if there are none. */
  decided(keys: readonly string[]): Promise<unknown> | undefined {
    const deciding = keys.flatMap(key => this.#deciding.get(key) ?? [])
    return deciding.length === 0 ? undefined : Promise.allSettled(new Set(deciding))
  }
}
