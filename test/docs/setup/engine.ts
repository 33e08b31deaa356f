import { randomUUID } from 'node:crypto'
import type { Guarantees } from 'signalbox'
import type { EngineFixture } from 'signalbox-conformance'
import {
  MemoryState,
  StateEngine,
  systemClock,
  type EngineState,
  type Hint,
  type Listener,
  type SessionInfo,
} from 'signalbox/engine'

const guarantees: Guarantees = {
  engine: 'map',
  scope: 'thread',
  deadHolder: 'lease',
  durability: 'none',
  weaknesses: [],
}

/** The state that the engines of a place share. */
class Place {
  readonly state = new MemoryState(0, systemClock)
  readonly engines = new Map<string, MapEngine>()
}

class MapEngine extends StateEngine {
  readonly name = 'map'
  readonly guarantees = guarantees
  readonly #place: Place

  constructor(place: Place) {
    super(systemClock, systemClock)
    this.#place = place
  }

  override async join(info: SessionInfo, listener: Listener): Promise<void> {
    this.#place.engines.set(info.session, this)
    await super.join(info, listener)
  }

  protected override async transact<T>(work: (state: EngineState) => T): Promise<T> {
    return work(this.#place.state)
  }

  protected override async notify({ session }: SessionInfo, hint: Hint): Promise<void> {
    await Promise.resolve()
    this.#place.engines.get(session)?.receive(hint)
  }
}

/** An engine that keeps locks in this process. */
export const fixture: EngineFixture = {
  name: 'map',
  guarantees,
  network: 'none',
  weaknesses: {},
  start() {
    const place = new Place()
    return { url: `map:${randomUUID()}`, engine: () => new MapEngine(place), close: () => undefined }
  },
}
