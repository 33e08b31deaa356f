import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { fileGuarantees } from '../../src/engines/file/guarantees.js'
import { openFile } from '../../src/engines/file/open.js'
import type { EngineFixture } from './fixture.js'

/** The file engine, in a folder of its own for each test. */
export const file: EngineFixture = {
  name: 'file',
  guarantees: fileGuarantees(true),
  weaknesses: {},
  async start() {
    const folder = await mkdtemp(join(tmpdir(), 'signalbox-'))
    const url = `file:${pathToFileURL(folder).pathname}`
    return {
      url,
      engine: () => openFile(url),
      close: () => rm(folder, { recursive: true, force: true }),
    }
  },
}
