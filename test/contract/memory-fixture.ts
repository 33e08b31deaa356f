import { randomUUID } from 'node:crypto'
import { memoryGuarantees } from '../../src/engines/memory/memory-engine.js'
import { openMemory } from '../../src/engines/memory/open.js'
import { DistantEngine } from './distant-engine.js'
import type { EngineFixture } from './fixture.js'
import { Random } from './random.js'

/** The memory engine as it is: every answer at once. */
export const memory: EngineFixture = {
  name: 'memory',
  guarantees: memoryGuarantees,
  weaknesses: {},
  start() {
    const url = `memory:${randomUUID()}`
    return { url, engine: () => openMemory(url), close: () => undefined }
  },
}

/** The memory engine at a distance: what holds for it holds for whoever talks with a server. */
export const distantMemory: EngineFixture = {
  ...memory,
  name: 'memory at a distance',
  start() {
    const url = `memory:${randomUUID()}`
    let boxes = 0
    return {
      url,
      engine: () => new DistantEngine(openMemory(url), new Random(boxes++)),
      close: () => undefined,
    }
  },
}
