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

/** So long a client is waited for that is about to write, in milliseconds. */
const PATIENCE = 1000
/** So much longer than what is allowed a grant is waited for, in milliseconds. */
const BEYOND = 10_000
const MAX_DELAY = 200
/** The longest time that comes on top for a packet, in milliseconds. */
const MAX_JITTER = 500
/** Engines that commit grants without waiting for the disk, so a server that is killed loses the latest. */
const LOSES_GRANTS = /^postgres(ql)?:/

/** What is done faults to. */
interface World {
  readonly settings: Settings
  readonly ways: Ways
  readonly server: CommandServer | undefined
  /** By place; the living ones. */
  readonly clients: readonly Client[]
  readonly recorder: Recorder
  readonly limits: Readonly<Record<string, number>>
  /** Starts a client at a place, in the stead of the one that was there. */
  readonly begin: (place: number) => Client
  /** Holds values as a transaction of another program; returns what ends it. */
  readonly holdValues: () => Promise<() => Promise<void>>
  /** Ends what a fault waits for when it aborts. */
  readonly interrupted: AbortSignal
}

/** What must be granted for everything to continue. */
interface Wait {
  readonly isIt: (request: LockRequest) => boolean
  /** From when on a wait is the fault's. */
  readonly since: number
}

/** Makes one fault after the other, and waits until everything continues. */
export class FaultMaker {
  readonly #world: World

  constructor(world: World) {
    this.#world = world
  }

  /**
   * Makes a fault, makes it good, and sees how long it took until everything continued; returns nothing when the run
   * was interrupted before.
   */
  async make(planned: PlannedFault): Promise<Fault | undefined> {
    const { clients, recorder } = this.#world
    const { kind, inside, pause } = planned
    await this.#sleep(pause)
    const silences = SILENCES.has(kind) && !this.#concernsAll(kind)
    // What hits one client is worst between reading and writing.
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
    // What took too long already is broken all the same.
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

  /** Whose next grants show that everything continues after a fault done to `who` at `at` and made good at `good`. */
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

  /** Whether a fault is done to all clients: to the server, to values, or to the one way that all share. */
  #concernsAll(kind: FaultKind): boolean {
    return (
      SERVER_FAULTS.has(kind) ||
      VALUE_FAULTS.has(kind) ||
      (NETWORK_FAULTS.has(kind) && this.#world.ways.areOne)
    )
  }

  async #inflict({ kind, length, jump, setsRight }: PlannedFault, place: number): Promise<void> {
    const { clients, ways, server, begin, settings } = this.#world
    // Longer than what an engine gives.
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
        // It stays so until it jumps again, or another process takes this one's place.
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
        // A stream that lacks something is of no use any more.
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
        // The connections stay open and bring nothing any more. The client has to find that out.
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
        // A grant that is lost excludes no one until its deadline.
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

  /** Waits, but no longer than until the run is interrupted: what was done is then made good at once. */
  async #sleep(time: number): Promise<void> {
    await sleep(time, undefined, { signal: this.#world.interrupted }).catch(() => undefined)
  }

  async #during(time: number, set: (fate: Fate) => void, fate: Fate): Promise<void> {
    set(fate)
    await this.#sleep(time)
    set('pass')
  }

  /** The place of the next client that gets a grant, if one does soon. */
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
   * When a living client first made a request that such a wait is about, also one that was refused; not before the
   * wait.
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
      // The harness may learn of a request after one that was made later.
      .reduce((earliest, { asked }) => Math.min(earliest, asked), Infinity)
    return first === Infinity ? since : Math.max(since, first)
  }

  /** Collects grants from now on. */
  #collectGrants() {
    const seen: LockRequest[] = []
    let onGrant = (): void => undefined
    const end = this.#world.recorder.onGrant(request => {
      seen.push(request)
      onGrant()
    })
    /**
     * How long the first one had to wait; undefined when none comes within `limit` from now, or before an interrupt.
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
    /** How long the last of them had to wait; undefined when one of them does not come. */
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
