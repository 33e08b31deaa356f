import type { Retries } from './options.js'

/**
 * Returns the delays between attempts, in milliseconds, as the package `retry` computes them.
 * @throws Error when `minTimeout` is above `maxTimeout`
 */
export function retryDelays(options: Retries): Iterable<number> {
  if (options.delays !== undefined) return options.delays
  const { retries = 10, factor = 2, minTimeout = 1000, maxTimeout = Infinity, randomize, forever } = options
  if (minTimeout > maxTimeout) throw new Error('minTimeout is greater than maxTimeout')
  const delay = (attempt: number): number => {
    const random = randomize === true ? 1 + Math.random() : 1
    return Math.min(Math.round(random * minTimeout * factor ** attempt), maxTimeout)
  }
  return forever === true ? cycle(retries, delay) : count(retries, delay)
}

function* count(retries: number, delay: (attempt: number) => number): Generator<number, void> {
  for (let attempt = 0; attempt < retries; attempt++) yield delay(attempt)
}

function* cycle(retries: number, delay: (attempt: number) => number): Generator<number, void> {
  for (;;) yield* count(Math.max(retries, 1), delay)
}
