import type { Clock } from '../../../clock.js'

/** Does things after a delay that is the same for all, so that one timer serves any number of them. */
export class Later<Item> {
  readonly #clock: Clock
  readonly #delay: number
  readonly #task: (item: Item) => void
  /** In the order in which they are due. */
  readonly #items: { readonly item: Item; readonly at: number }[] = []

  /** @param delay milliseconds. @param task must not throw. */
  constructor(clock: Clock, delay: number, task: (item: Item) => void) {
    this.#clock = clock
    this.#delay = delay
    this.#task = task
  }

  add(item: Item): void {
    this.#items.push({ item, at: this.#clock.now() + this.#delay })
    if (this.#items.length === 1) this.#arm(this.#delay)
  }

  #arm(delay: number): void {
    // Whoever waits for an answer has a connection or a timer of its own that keeps the process alive.
    this.#clock.after(delay, () => this.#run(), false)
  }

  #run(): void {
    const now = this.#clock.now()
    const next = this.#items.findIndex(({ at }) => at > now)
    const due = this.#items.splice(0, next < 0 ? this.#items.length : next)
    const [first] = this.#items
    if (first) this.#arm(first.at - now)
    for (const { item } of due) this.#task(item)
  }
}
