import { randomUUID } from 'node:crypto'
import { systemClock } from '../../src/base/clock.js'
import type { Engine, LockRequest } from '../../src/engine/contract.js'
import type { MemoryState } from '../../src/engine/kit/memory-state.js'
import { MemoryEngine, MemorySpace } from '../../src/engines/memory/memory-engine.js'
import {
  FaultInjectingEngine,
  type Intercept,
} from '../../packages/conformance/src/fault-injecting-engine.js'
import type { EngineFixture } from '../../packages/conformance/src/fixture.js'
import { Random } from '../../packages/conformance/src/random.js'
import { DistantEngine } from '../contract/distant-engine.js'
import { memory } from '../contract/memory-fixture.js'
import { RemoteEngine } from './remote-engine.js'

/** A mistake that the author of an engine may make. */
export interface Mistake {
  /** Changes the engine of each box: the intercept answers in place of the wrapped engine. */
  readonly client?: (engine: FaultInjectingEngine, wrapped: Engine) => Intercept
  /** Changes the state that all boxes of a place share. */
  readonly server?: (state: MemoryState) => void
  /** Called when the connections of a box break, with its waiting requests. */
  readonly cut?: (engine: FaultInjectingEngine, state: MemoryState, waiting: readonly LockRequest[]) => void
}

/** Returns the memory engine with a mistake in it, at a distance and over a network that checks can disturb. */
export function mistaken({ client, server, cut }: Mistake): EngineFixture {
  const spaces = new Map<string, MemorySpace>()
  const wrap = (wrapped: Engine): FaultInjectingEngine => {
    const engine = new FaultInjectingEngine(wrapped)
    if (client) engine.intercept = client(engine, wrapped)
    return engine
  }
  const engineOf = (url: string): MemoryEngine => new MemoryEngine(url, spaces.get(url)!, systemClock)
  return {
    ...memory,
    name: 'memory with a mistake',
    // This scope includes the checks of processes.
    guarantees: { ...memory.guarantees, scope: 'machine' },
    start() {
      const url = `memory:${randomUUID()}`
      const space = new MemorySpace(systemClock)
      spaces.set(url, space)
      server?.(space.state)
      let boxes = 0
      return {
        url,
        engine: () => wrap(new DistantEngine(engineOf(url), new Random(boxes++))),
        close: () => void spaces.delete(url),
      }
    },
    network({ url }) {
      const remote = new RemoteEngine(engineOf(url))
      const engine = wrap(remote)
      const { state } = spaces.get(url)!
      return {
        engine,
        cut() {
          remote.cut()
          cut?.(engine, state, remote.waiting())
        },
        restore: () => remote.restore(),
        slowDown: delays => remote.slowDown(delays),
        swallow: way => remote.swallow(way),
        strand: () => {
          throw new Error('this network strands nothing')
        },
      }
    },
  }
}
