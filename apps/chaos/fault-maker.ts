import { setTimeout as sleep } from 'node:timers/promises'
import type { Client } from './client-process.js'
import type { Fault, LockRequest } from './history.js'
import { silenceOf } from './limits.js'
import {
  CLIENT_FAULTS,
  NETWORK_FAULTS,
  SERVER_FAULTS,
  SILENCES,
  VALUE_FAULTS,
  hintsOf,
  type FaultKind,
  type PlannedFault,
} from './plan.js'
import type { Recorder } from './recorder.js'
import type { CommandServer } from './servers/command-server.js'
import type { Fate } from './servers/proxy.js'
import type { Settings } from './settings.js'
import type { Ways } from './ways.js'

/** Maximum time to wait for a client that is about to write, in milliseconds. */
const PATIENCE = 1000
/** Time to wait for a grant after the maximum recovery time has passed, in milliseconds. */
const BEYOND = 10_000
const MAX_DELAY = 200
/** Maximum additional delay of a packet, in milliseconds. */
const MAX_JITTER = 500
/** Engines that commit grants without waiting for the disk. A server that is killed loses the latest grants. */
const LOSES_GRANTS = /^postgres(ql)?:/

/** The parts of a run that faults affect. */
interface World {
  readonly settings: Settings
  readonly ways: Ways
  readonly server: CommandServer | undefined
  /** The living clients, by place. */
  readonly clients: readonly Client[]
  readonly recorder: Recorder
  readonly limits: Readonly<Record<string, number>>
  /** Starts a client at a place and replaces the previous one. */
  readonly begin: (place: number) => Client
  /** Holds values in a transaction of another program. Returns a function that ends it. */
  readonly holdValues: () => Promise<() => Promise<void>>
  /** Ends all waits when it aborts. */
  readonly interrupted: AbortSignal
}

/** A grant that must follow for everything to continue. */
interface Wait {
  readonly isIt: (request: LockRequest) => boolean
  /** The fault explains waits only from this time on. */
  readonly since: number
}

/** Makes faults, one at a time, and waits after each until everything continues. */
export class FaultMaker {
  readonly #world: World

  constructor(world: World) {
    this.#world = world
  }

  /**
   * Makes a fault, reverts it, and measures the time until everything continues. Returns undefined if the run was
   * interrupted before the fault.
   */
  async make(planned: PlannedFault): Promise<Fault | undefined> {
    const { clients, recorder } = this.#world
    const { kind, inside, pause } = planned
    await this.#sleep(pause)
    const silences = SILENCES.has(kind) && !this.#concernsAll(kind)
    // A fault of one client is worst between its read and its write.
    const needsHolder = inside && (CLIENT_FAULTS.has(kind) || silences)
    const place = (needsHolder ? await this.#nextHolder() : undefined) ?? planned.client
    if (this.#isInterrupted()) return undefined
    const { who } = clients[place]!
    const at = recorder.now
    const key = kind === 'kill' || kind === 'stop' || silences ? recorder.heldBy(who)[0] : undefined
    const grants = this.#collectGrants()
    await this.#inflict(planned, place)
    const good = recorder.now
    const waits = this.#waitsAfter(kind, { who, key, at, good })
    const limit = this.#world.limits[kind]!
    const recovery = await grants.last(waits, limit + BEYOND)
    const forKey: Wait = { isIt: other => other.who !== who && other.key === key, since: at }
    const others = silences && key !== undefined ? await grants.first(forKey, limit + BEYOND) : undefined
    grants.end()
    // An interrupt does not excuse a recovery that has already taken too long.
    const isBrokenOff =
      this.#isInterrupted() && recovery === undefined && recorder.now - waits[0]!.since <= limit
    return {
      kind,
      ...(this.#concernsAll(kind) ? {} : { client: place + 1 }),
      at,
      until: good,
      ...(key !== undefined && { key }),
      ...(recovery !== undefined && { recovery }),
      ...(others !== undefined && { others }),
      ...(isBrokenOff && { interrupted: true }),
    }
  }

  /**
   * Returns the grants that show that everything continues after a fault done to `who` at `at` and reverted at `good`.
   */
  #waitsAfter(
    kind: FaultKind,
    { who, key, at, good }: { who: string; key: string | undefined; at: number; good: number },
  ): readonly Wait[] {
    switch (kind) {
      case 'kill':
      case 'stop':
        return [{ isIt: other => other.who !== who && (key === undefined || other.key === key), since: at }]
      case 'shift clock':
        return [{ isIt: request => request.who === who && request.asked >= good, since: good }]
      default: {
        const concerned = this.#concernsAll(kind) ? this.#world.clients.map(client => client.who) : [who]
        return concerned.map(one => ({ isIt: request => request.who === one, since: good }))
      }
    }
  }

  /** Whether a fault affects all clients: one of the server, of values, or of a network that all clients share. */
  #concernsAll(kind: FaultKind): boolean {
    return (
      SERVER_FAULTS.has(kind) ||
      VALUE_FAULTS.has(kind) ||
      (NETWORK_FAULTS.has(kind) && this.#world.ways.areOne)
    )
  }

  async #inflict({ kind, length, jump, setsRight }: PlannedFault, place: number): Promise<void> {
    const { clients, ways, server, begin, settings } = this.#world
    // Longer than the time after which an engine drops a silent client.
    const long = silenceOf(settings.engine, settings.lease) * (1.2 + 0.6 * length)
    const client = clients[place]!
    switch (kind) {
      case 'kill': {
        client.signal('SIGKILL')
        await client.ended
        await begin(place).ready
        return
      }
      case 'stop':
        client.signal('SIGSTOP')
        await this.#sleep(long)
        client.signal('SIGCONT')
        return
      case 'shift clock':
        // The clock stays wrong until its next jump, or until another process replaces this one.
        return client.shiftWallClock(setsRight && client.ahead !== 0 ? 0 : jump)
      case 'cut':
        ways.of(place).cut()
        return
      case 'hold requests':
        return this.#during(long, fate => void (ways.of(place).requests = fate), 'hold')
      case 'hold replies':
        return this.#during(long, fate => void (ways.of(place).replies = fate), 'hold')
      case 'lose replies':
        await this.#during(long * length, fate => void (ways.of(place).replies = fate), 'lose')
        // A stream with a gap cannot be used any more.
        ways.of(place).cut()
        return
      case 'delay':
        ways.of(place).delay = MAX_DELAY * (0.1 + 0.9 * length)
        await this.#sleep(long)
        ways.of(place).delay = 0
        return
      case 'jitter':
        ways.of(place).jitter = MAX_JITTER * (0.1 + 0.9 * length)
        await this.#sleep(long)
        ways.of(place).jitter = 0
        return
      case 'lose hints':
        // The connections stay open but deliver nothing. The client must detect that.
        ways.of(place).mute = hintsOf(settings.engine)
        await this.#sleep(long)
        ways.of(place).mute = undefined
        return
      case 'hold values': {
        const end = await this.#world.holdValues()
        await this.#sleep(long)
        return end()
      }
      case 'kill server':
        await server!.kill()
        // A lost grant no longer excludes other clients: waits until its deadline has passed.
        if (LOSES_GRANTS.test(settings.engine)) await sleep(settings.lease)
        return server!.start()
      case 'stop server':
        server!.pause()
        await this.#sleep(long)
        server!.resume()
    }
  }

  #isInterrupted(): boolean {
    return this.#world.interrupted.aborted
  }

  /** Waits for a number of milliseconds, or until the run is interrupted, so that the fault is reverted at once. */
  async #sleep(time: number): Promise<void> {
    await sleep(time, undefined, { signal: this.#world.interrupted }).catch(() => undefined)
  }

  async #during(time: number, set: (fate: Fate) => void, fate: Fate): Promise<void> {
    set(fate)
    await this.#sleep(time)
    set('pass')
  }

  /** Returns the place of the next client that gets a grant; undefined if none does within {@link PATIENCE}. */
  async #nextHolder(): Promise<number | undefined> {
    const { recorder, clients } = this.#world
    const late = new AbortController()
    let stop = (): void => undefined
    const came = new Promise<number>(resolve => {
      stop = recorder.onGrant(({ who }) => resolve(clients.findIndex(client => client.who === who)))
    })
    const place = await Promise.race([came, sleep(PATIENCE, -1, { signal: late.signal })])
    late.abort()
    stop()
    return place < 0 ? undefined : place
  }

  /**
   * Returns the time of the first matching request of a living client, but at least `since`. Includes refused requests.
   */
  #wantedFrom({ isIt, since }: Wait): number {
    const { clients, recorder } = this.#world
    const first = recorder.requests
      .filter(
        request =>
          isIt(request) &&
          (request.left ?? Infinity) >= since &&
          clients.some(({ who }) => who === request.who),
      )
      // The harness may receive requests in another order than they were made.
      .reduce((earliest, { asked }) => Math.min(earliest, asked), Infinity)
    return first === Infinity ? since : Math.max(since, first)
  }

  /** Collects grants from now on. `end` stops it. */
  #collectGrants() {
    const seen: LockRequest[] = []
    let onGrant = (): void => undefined
    const end = this.#world.recorder.onGrant(request => {
      seen.push(request)
      onGrant()
    })
    /**
     * Returns the wait of the first matching grant, in milliseconds; undefined if none comes within `limit` from now,
     * or before an interrupt.
     */
    const first = async ({ isIt, since }: Wait, limit: number): Promise<number | undefined> => {
      const { interrupted } = this.#world
      const late = new AbortController()
      const giveUp = (): void => {
        late.abort()
        onGrant()
      }
      const timer = setTimeout(giveUp, limit)
      interrupted.addEventListener('abort', giveUp)
      try {
        while (!late.signal.aborted && !this.#isInterrupted()) {
          const found = seen.find(request => isIt(request) && request.granted! >= since)
          if (found) return found.granted! - this.#wantedFrom({ isIt, since })
          await new Promise<void>(resolve => (onGrant = resolve))
        }
        return undefined
      } finally {
        clearTimeout(timer)
        interrupted.removeEventListener('abort', giveUp)
      }
    }
    /** Returns the longest of these waits, in milliseconds; undefined if one of the grants does not come. */
    const last = async (waits: readonly Wait[], limit: number): Promise<number | undefined> => {
      let longest = 0
      for (const wait of waits) {
        const time = await first(wait, limit)
        if (time === undefined) return undefined
        longest = Math.max(longest, time)
      }
      return longest
    }
    return { first, last, end }
  }
}
