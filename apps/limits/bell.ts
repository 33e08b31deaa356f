/** Wakes all waiting callers, as `notifyAll` does. */
export interface Bell {
  /** Number of times that the bell has rung. */
  readonly rung: number
  ring(): void
  /** Resolves when the bell has rung more than `rung` times. */
  after(rung: number): Promise<void>
}

/** A bell within one thread. */
export class LocalBell implements Bell {
  rung = 0
  readonly #waiting: (() => void)[] = []

  ring(): void {
    this.rung++
    for (const wake of this.#waiting.splice(0)) wake()
  }

  after(rung: number): Promise<void> {
    return new Promise(resolve => {
      if (this.rung > rung) resolve()
      else this.#waiting.push(resolve)
    })
  }
}

/** A bell for several threads, on a word of shared memory. */
export class SharedBell implements Bell {
  readonly #words: Int32Array
  readonly #word: number

  constructor(words: Int32Array, word: number) {
    this.#words = words
    this.#word = word
  }

  get rung(): number {
    return Atomics.load(this.#words, this.#word)
  }

  ring(): void {
    Atomics.add(this.#words, this.#word, 1)
    Atomics.notify(this.#words, this.#word)
  }

  async after(rung: number): Promise<void> {
    await waitAsync(this.#words, this.#word, rung).value
  }
}

/** The compiler's type library lacks `Atomics.waitAsync`. */
const { waitAsync } = Atomics as unknown as {
  readonly waitAsync: (words: Int32Array, word: number, value: number) => { readonly value: unknown }
}
