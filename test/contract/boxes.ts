import { afterEach, beforeEach } from 'vitest'
import { Box, type BoxOptions } from '../../src/box.js'
import { systemClock } from '../../src/clock.js'
import type { EngineFixture, Place } from './fixture.js'
import { MeddledEngine } from './meddled-engine.js'

/** The boxes of one test, all on one place; they are closed when it ends. */
export class Boxes {
  readonly #fixture: EngineFixture
  #place: Place | undefined
  readonly #boxes: Box[] = []

  constructor(fixture: EngineFixture) {
    this.#fixture = fixture
  }

  get place(): Place {
    return this.#place!
  }

  /** A box as of a process of its own. */
  async open(options?: BoxOptions): Promise<Box> {
    const box = await Box.join(await this.place.engine(), systemClock, options)
    this.#boxes.push(box)
    const { records } = this.place
    if (records) {
      const store = box.store.bind(box)
      box.store = (name, storeOptions) => store(name, { records, ...storeOptions })
    }
    return box
  }

  async several(count: number): Promise<Box[]> {
    return Promise.all(Array.from({ length: count }, () => this.open()))
  }

  /** Two boxes, which most tests need. */
  async pair(): Promise<[Box, Box]> {
    return [await this.open(), await this.open()]
  }

  /** A box whose conversation with the engine can be seen and disturbed. */
  async meddled(options?: BoxOptions): Promise<[Box, MeddledEngine]> {
    const engine = new MeddledEngine(await this.place.engine())
    const box = await Box.join(engine, systemClock, options)
    this.#boxes.push(box)
    return [box, engine]
  }

  async start(): Promise<void> {
    this.#place = await this.#fixture.start()
  }

  /** Closes the boxes that are still open. */
  async closeAll(): Promise<void> {
    for (const box of this.#boxes.splice(0)) await box.close()
  }

  async end(): Promise<void> {
    await this.closeAll()
    await this.#place?.close()
    this.#place = undefined
  }
}

/** Boxes for each test of the describe block that this is called in. */
export function boxesOf(fixture: EngineFixture): Boxes {
  const boxes = new Boxes(fixture)
  beforeEach(() => boxes.start())
  afterEach(() => boxes.end())
  return boxes
}
