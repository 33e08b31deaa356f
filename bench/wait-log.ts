/** A fast list of numbers. */
export class WaitLog {
  #values = new Float64Array(4096)
  #length = 0

  add(value: number): void {
    if (this.#length === this.#values.length) {
      const longer = new Float64Array(2 * this.#length)
      longer.set(this.#values)
      this.#values = longer
    }
    this.#values[this.#length++] = value
  }

  /** Returns all numbers in the order in which they were added. */
  values(): Float64Array {
    return this.#values.slice(0, this.#length)
  }
}

/** Concatenates the values of several logs. */
export function concatenated(parts: readonly Float64Array[]): Float64Array {
  const all = new Float64Array(parts.reduce((sum, part) => sum + part.length, 0))
  let start = 0
  for (const part of parts) {
    all.set(part, start)
    start += part.length
  }
  return all
}
