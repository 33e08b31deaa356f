import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { expect } from 'vitest'
import { fileGuarantees } from '../../src/engines/file/guarantees.js'
import { openFile } from '../../src/engines/file/open.js'
import type { EngineFixture } from './fixture.js'
import { afterPowerCut } from './power-cut.js'

function fixture(durable: boolean): EngineFixture {
  return {
    name: durable ? 'file' : 'file, not durable',
    guarantees: fileGuarantees(durable),
    weaknesses: durable
      ? {}
      : {
          async P13() {
            expect(await afterPowerCut('')).toBe('newest')
            expect(await afterPowerCut('?durable=false')).toBe('older')
          },
        },
    async start() {
      const folder = await mkdtemp(join(tmpdir(), 'signalbox-'))
      const url = `file:${pathToFileURL(folder).pathname}${durable ? '' : '?durable=false'}`
      return {
        url,
        engine: () => openFile(url),
        close: () => rm(folder, { recursive: true, force: true }),
      }
    },
  }
}

/** The file engine, in a folder of its own for each test. */
export const file = fixture(true)

/** The file engine as it is when it was told that commits need not wait for the disk. */
export const hastyFile = fixture(false)
