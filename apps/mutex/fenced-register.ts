/** A value with the greatest fencing token that has written it. Rejects writes with smaller tokens. */
export class FencedRegister {
  value = 'nothing'
  #greatest = 0n

  /** Writes the value unless a greater token has written before. @returns whether it wrote the value. */
  write(value: string, token: bigint): boolean {
    if (token < this.#greatest) return false
    this.#greatest = token
    this.value = value
    return true
  }
}
