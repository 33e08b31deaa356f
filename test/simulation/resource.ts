import type { History } from './history.js'
import type { GrantRecord } from './observed-table.js'

/** An external resource. It rejects writes with a smaller token than it has seen. */
export class Resource {
  readonly #history: History
  readonly #tokens = new Map<string, bigint>()
  /** By key: the position of the last writer's grant among all grants of the server. */
  readonly #places = new Map<string, number>()

  constructor(history: History) {
    this.#history = history
  }

  /**
   * Receives a write.
   * @param grant the writer's grant, as the server knows it
   * @param held whether the writer passes `assertHeld` at this moment, and no operator has intervened
   */
  write(key: string, token: bigint, grant: GrantRecord, held: boolean): void {
    const accepts = token >= (this.#tokens.get(key) ?? 0n)
    this.#history.note('resource', accepts ? 'accepts' : 'refuses', { key, token })
    if (!accepts) {
      if (held)
        this.#history.violate('P2', `a write of ${grant.request.id} to ${key} is refused while it holds`)
      return
    }
    this.#tokens.set(key, token)
    if (grant.place < (this.#places.get(key) ?? 0))
      this.#history.violate('P13', `a write of ${grant.request.id} to ${key} came after one of a later grant`)
    this.#places.set(key, grant.place)
  }
}
