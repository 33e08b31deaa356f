import { Presets, SingleBar } from 'cli-progress'
import { shortDuration } from 'signalbox/reports'
import { RateMeter } from './rate-meter.js'

/** Interval between updates on a terminal, in milliseconds. */
const BAR_INTERVAL = 100
/** Interval between updates of other output, in milliseconds. */
const LINE_INTERVAL = 2000

/** Shows the progress of a run: as a bar on a terminal, otherwise as a line every two seconds. */
export class ProgressDisplay {
  readonly #output: NodeJS.WriteStream
  readonly #total: number | undefined
  readonly #done: () => number
  readonly #meter = new RateMeter()
  readonly #bar: SingleBar | undefined
  #timer: NodeJS.Timeout | undefined

  constructor(output: NodeJS.WriteStream, total: number | undefined, done: () => number) {
    this.#output = output
    this.#total = total
    this.#done = done
    if (!output.isTTY || total === undefined) return
    const format = '{bar} {percentage}% | {value} of {total} messages | {rate}/s | {left} left'
    this.#bar = new SingleBar({ format, stream: output, hideCursor: true }, Presets.shades_classic)
  }

  start(): void {
    this.#meter.rate(performance.now(), this.#done())
    this.#bar?.start(this.#total ?? 0, this.#done(), { rate: 0, left: '?' })
    const interval = this.#bar ? BAR_INTERVAL : LINE_INTERVAL
    this.#timer = setInterval(() => this.#show(), interval).unref()
  }

  /** Ends the display, so that other output can follow. */
  stop(): void {
    clearInterval(this.#timer)
    if (!this.#bar) return
    this.#show()
    this.#bar.stop()
  }

  #show(): void {
    const done = this.#done()
    const rate = this.#meter.rate(performance.now(), done)
    const left =
      this.#total === undefined || rate === 0 ? '?' : shortDuration(((this.#total - done) / rate) * 1000)
    if (this.#bar) this.#bar.update(done, { rate: Math.round(rate), left })
    else this.#output.write(`${progressLine(done, this.#total, rate, left)}\n`)
  }
}

export function progressLine(done: number, total: number | undefined, rate: number, left: string): string {
  const of = total === undefined ? '' : ` of ${total}`
  const remaining = total === undefined ? '' : `, ${left} left`
  return `${done}${of} messages, ${Math.round(rate)}/s${remaining}`
}
