/** A value that a resource keeps together with the greatest token that ever wrote it, and that refuses smaller ones. */
export class FencedRegister {
  value = 'nothing'
  #greatest = 0n

  /** Writes unless a greater token has written before. @returns whether it was written. */
  write(value: string, token: bigint): boolean {
    if (token < this.#greatest) return false
    this.#greatest = token
    this.value = value
    return true
  }
}
