interface Sample {
  readonly at: number
  readonly done: number
}

/** How long samples count, in milliseconds. */
const REMEMBERED = 5000

/** Measures how fast something goes at present: over the last five seconds. */
export class RateMeter {
  readonly #samples: Sample[] = []

  /** Notes how much is done at a time in milliseconds; gives how much is done a second. */
  rate(at: number, done: number): number {
    this.#samples.push({ at, done })
    while (this.#samples.length > 2 && this.#samples[1]!.at <= at - REMEMBERED) this.#samples.shift()
    const first = this.#samples[0]!
    return at > first.at ? ((done - first.done) / (at - first.at)) * 1000 : 0
  }
}

/** A duration in seconds for people: `45 s`, `3 min 20 s`, `2 h 5 min`. */
export function shortDuration(seconds: number): string {
  const whole = Math.round(seconds)
  if (whole < 60) return `${whole} s`
  const minutes = Math.floor(whole / 60)
  return minutes < 60 ? `${minutes} min ${whole % 60} s` : `${Math.floor(minutes / 60)} h ${minutes % 60} min`
}
