/** Queues for the tasks of one process, by key. */
export class LocalQueues {
  readonly #last = new Map<string, Promise<void>>()

  /** Resolves when all earlier tasks have left, with a function that leaves. */
  async enter(key: string): Promise<() => void> {
    const before = this.#last.get(key)
    let leave!: () => void
    this.#last.set(key, new Promise(resolve => (leave = resolve)))
    await before
    return leave
  }
}
