/** Tasks of one process that wait for each other, by key. */
export class LocalQueues {
  readonly #last = new Map<string, Promise<void>>()

  /** Resolves when all who came before have left; returns what leaves. */
  async enter(key: string): Promise<() => void> {
    const before = this.#last.get(key)
    let leave!: () => void
    this.#last.set(key, new Promise(resolve => (leave = resolve)))
    await before
    return leave
  }
}
