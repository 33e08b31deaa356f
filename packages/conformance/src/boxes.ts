import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { open, type Box, type BoxEvent, type BoxOptions } from 'signalbox'
import type { Engine } from 'signalbox/engine'
import { testsOn, type Tests } from './checks.js'
import { startChild, type Child } from './child.js'
import type { EngineFixture, Network, Place } from './fixture.js'
import { FaultInjectingEngine } from './fault-injecting-engine.js'

/** Folder of the programs that checks run in other processes. Tests of the sources run the built programs, too. */
const programs = join(
  dirname(createRequire(import.meta.url).resolve('signalbox-conformance/package.json')),
  'dist',
)

/** The boxes of one check, on one place. They are closed when the check ends. */
export class Boxes {
  readonly #fixture: EngineFixture
  #place: Place | undefined
  readonly #boxes: Box[] = []
  readonly #cleanups: (() => void)[] = []

  constructor(fixture: EngineFixture) {
    this.#fixture = fixture
  }

  get place(): Place {
    return this.#place!
  }

  /** Opens a box that behaves towards the others like a box in another process. */
  async open(options?: BoxOptions): Promise<Box> {
    const box = await this.join(await this.place.engine(), options)
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

  /** Opens two boxes, as most checks need. */
  async pair(): Promise<[Box, Box]> {
    return [await this.open(), await this.open()]
  }

  /** Opens a box whose operations the check can observe and disturb. */
  async withFaults(options?: BoxOptions): Promise<[Box, FaultInjectingEngine]> {
    const engine = new FaultInjectingEngine(await this.place.engine())
    return [await this.join(engine, options), engine]
  }

  /** Opens a box over a network of its own. The fixture must have one. */
  async overNetwork(): Promise<[Box, Network]> {
    const { network: make } = this.#fixture
    if (make === 'none') throw new Error('the engine is not reached over a network')
    const network = await make(this.place)
    return [await this.join(network.engine), network]
  }

  /** Opens a box on an engine of the place that no box has joined yet. */
  async join(engine: Engine, options?: BoxOptions): Promise<Box> {
    const box = await open({ engine }, options)
    this.#boxes.push(box)
    return box
  }

  async start(): Promise<void> {
    this.#place = await this.#fixture.start()
  }

  /** Starts a program in a process of its own. It opens the place of the check. */
  program(name: 'holder' | 'leaver' | 'permits' | 'quiet' | 'victim', argument: string): Child {
    const { opener = 'signalbox' } = this.#fixture
    const child = startChild(join(programs, `${name}.process.js`), [opener, this.place.url, argument])
    this.atEnd(() => child.kill('SIGKILL'))
    return child
  }

  /**
   * Collects the events of a box on a diagnostics channel from now until the check ends.
   * @param channel for example `lock:granted`
   */
  events<E extends BoxEvent>(channel: string, box: Box): E[] {
    const events: E[] = []
    const listen = (message: unknown): void => {
      if ((message as E).session === box.session) events.push(message as E)
    }
    subscribe(`signalbox:${channel}`, listen)
    this.atEnd(() => void unsubscribe(`signalbox:${channel}`, listen))
    return events
  }

  /** Calls a function when the check ends, before the boxes are closed. */
  atEnd(cleanup: () => void): void {
    this.#cleanups.push(cleanup)
  }

  /** Closes the boxes that are still open. */
  async closeAll(): Promise<void> {
    for (const box of this.#boxes.splice(0)) await box.close()
  }

  async end(): Promise<void> {
    for (const cleanup of this.#cleanups.splice(0)) cleanup()
    await this.closeAll()
    await this.#place?.close()
    this.#place = undefined
  }
}

/** Adds checks that each have boxes of their own, on a place of their own. */
export function testOn(fixture: EngineFixture): Tests<Boxes> {
  return testsOn(() => new Boxes(fixture))
}
