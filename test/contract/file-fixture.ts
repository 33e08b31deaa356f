import { mkdtemp, readdir, rm, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { expect } from 'vitest'
import { loadSqlite, type Connection } from '../../src/engines/file/driver.js'
import { fileGuarantees } from '../../src/engines/file/guarantees.js'
import { openFile } from '../../src/engines/file/open.js'
import { open as openBox } from '../../src/open.js'
import { StoppedWriter } from '../support/file/stopped-writer.js'
import type { EngineFixture } from '../../packages/conformance/src/fixture.js'
import { afterPowerCut } from './power-cut.js'
import { pause, soFar } from '../../packages/conformance/src/time.js'

function fixture(durable: boolean): EngineFixture {
  return {
    name: durable ? 'file' : 'file, not durable',
    guarantees: fileGuarantees(durable),
    network: 'none',
    weaknesses: {
      P9: heldUpByStopped,
      ...(durable ? {} : { P13: lostInPowerCut }),
    },
    async start() {
      const folder = await mkdtemp(join(tmpdir(), 'signalbox-'))
      // Boxes of one thread share the open files of a path. With different paths, they behave as in different
      // processes.
      const link = `${folder}-link`
      await symlink(folder, link)
      const [url, other] = [folder, link].map(
        path => `file:${pathToFileURL(path).pathname}${durable ? '' : '?durable=false'}`,
      ) as [string, string]
      let engines = 0
      return {
        url,
        engine: () => openFile(engines++ % 2 === 0 ? url : other),
        size: () => sizeOf(folder),
        spoil: (store, key) =>
          withDatabase(folder, connection => {
            const spoil = connection.prepare('update entries set value = ? where key = ?')
            spoil.run('{"cut', `${store}/${key}`)
          }),
        close: async () => {
          await rm(link)
          await rm(folder, { recursive: true, force: true })
        },
      }
    },
  }
}

/** Counts the rows of all tables, and the files. Each box has a file for its socket. */
async function sizeOf(folder: string): Promise<number> {
  const files = await readdir(folder)
  return withDatabase(folder, connection => {
    const tables = connection.prepare(`select name from sqlite_schema where type = 'table'`).all()
    const rows = tables.map(
      ([name]) => connection.prepare(`select count(*) from ${name as string}`).get()![0] as number,
    )
    return rows.reduce((sum, count) => sum + count, files.length)
  })
}

async function withDatabase<T>(folder: string, work: (connection: Connection) => T): Promise<T> {
  const connection = (await loadSqlite()).open(join(folder, 'signalbox.db'))
  try {
    return work(connection)
  } finally {
    connection.close()
  }
}

/** Shows that a process that is stopped during a transaction delays all others, on any key. */
async function heldUpByStopped(): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'signalbox-'))
  const box = await openBox(`file:${folder}`)
  const stopped = await StoppedWriter.start(folder)
  try {
    const asked = box.mutex('key').acquire()
    await pause(1200)
    expect(await soFar(asked)).toBe('pending')
    stopped.goOn()
    await (await asked).release()
  } finally {
    await stopped.kill()
    await box.close()
    await rm(folder, { recursive: true })
  }
}

async function lostInPowerCut(): Promise<void> {
  expect(await afterPowerCut('')).toBe('newest')
  expect(await afterPowerCut('?durable=false')).toBe('older')
}

/** The file engine, in a folder of its own for each test. */
export const file = fixture(true)

/** The file engine with commits that do not wait for the disk. */
export const hastyFile = fixture(false)
