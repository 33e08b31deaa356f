/** A list of given permits, for comparison. */
export class NaiveCount {
  readonly grants: { readonly at: number; n: number }[] = []

  /** Returns the grant, whose number may change later. */
  add(at: number, n: number): { readonly at: number; n: number } {
    const grant = { at, n }
    this.grants.push(grant)
    return grant
  }

  /** Returns the number of permits given in the half-open interval of this length that ends with `end`. */
  within(length: number, end: number): number {
    return this.#sum(grant => grant.at <= end && end - grant.at < length)
  }

  /** Returns the maximum number of permits in any half-open interval of this length. */
  worst(length: number): number {
    let worst = 0
    let sum = 0
    let first = 0
    for (const grant of this.grants) {
      sum += grant.n
      while (grant.at - this.grants[first]!.at >= length) sum -= this.grants[first++]!.n
      worst = Math.max(worst, sum)
    }
    return worst
  }

  /** Returns the maximum number of permits in any period of the clock. */
  worstPeriod(length: number): number {
    const periods = new Map<number, number>()
    for (const { at, n } of this.grants) {
      const period = Math.floor(at / length)
      periods.set(period, (periods.get(period) ?? 0) + n)
    }
    return Math.max(0, ...periods.values())
  }

  remove(at: number, n: number): void {
    const grant = this.grants.find(each => each.at === at && each.n === n)!
    grant.n = 0
  }

  get total(): number {
    return this.#sum(() => true)
  }

  #sum(counts: (grant: { readonly at: number; readonly n: number }) => boolean): number {
    return this.grants.reduce((sum, grant) => sum + (counts(grant) ? grant.n : 0), 0)
  }
}
