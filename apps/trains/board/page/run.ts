import { followEvents } from '../../../../packages/console/src/page-kit/browser/event-stream.js'
import type { Freshness } from '../../../../packages/console/src/page-kit/browser/freshness.js'
import type { AboutFrame, EndFrame, Frame, NowFrame } from '../frames.js'
import { Trains } from './trains.js'

/** The state of a run, as the server reports it. */
export class Run {
  readonly trains = new Trains()
  about: AboutFrame | undefined
  now: NowFrame | undefined
  end: EndFrame | undefined
  readonly #onChange: () => void
  readonly #ended = new AbortController()
  #arrived: number | undefined
  #lost: string | undefined

  constructor(onChange: () => void) {
    this.#onChange = onChange
    const follower = {
      open: (signal: AbortSignal) => fetch('events', { signal, cache: 'no-store' }),
      take: (frame: unknown, isFirst: boolean) => this.#take(frame as Frame, isFirst),
      lost: (reason: string) => {
        this.#lost = reason
        onChange()
      },
    }
    void followEvents(follower, this.#ended.signal)
  }

  freshness(): Freshness {
    if (this.end) return { state: 'ended' }
    if (this.#lost !== undefined) return { state: 'old', since: this.#arrived, reason: this.#lost }
    return { state: this.now ? 'live' : 'connecting' }
  }

  #take(frame: Frame, isFirst: boolean): void {
    this.#lost = undefined
    this.#arrived = Date.now()
    // After a new connection, the server may be another one with another run.
    if (isFirst) this.trains.clear()
    switch (frame.kind) {
      case 'about':
        this.about = frame
        this.trains.pace = frame.dwell
        break
      case 'now':
        this.now = frame
        this.trains.take(frame)
        break
      case 'end':
        this.end = frame
        this.trains.clear()
        this.trains.take({ trains: frame.standing, waiting: [] })
        this.#ended.abort()
    }
    this.#onChange()
  }
}
