import { execFileSync } from 'node:child_process'
import fs from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { syncBuiltinESMExports } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DATABASE } from '../../src/engines/file/folder.js'
import { open } from '../../src/open.js'

/**
 * Returns the value that the file engine has after a power failure. A copy of its files at the last sync stands for the
 * disk.
 *
 * @param query the parameters of the engine's URL
 */
export async function afterPowerCut(query: string): Promise<unknown> {
  const machine = await mkdtemp(join(tmpdir(), 'signalbox-'))
  const disk = await mkdtemp(join(tmpdir(), 'signalbox-'))
  const reachDisk = (): void => {
    // Another process copies the files, because closing a database file in this process would drop SQLite's locks on
    // it.
    for (const file of [DATABASE, `${DATABASE}-wal`])
      execFileSync('cp', [join(machine, file), join(disk, file)])
  }
  // Ignores other files, because other tests of this process sync theirs in the meantime.
  const isOurs = (descriptor: number): boolean =>
    [DATABASE, `${DATABASE}-wal`].some(
      file =>
        fs.statSync(join(machine, file), { throwIfNoEntry: false })?.ino === fs.fstatSync(descriptor).ino,
    )
  const { fdatasync } = fs
  fs.fdatasync = Object.assign(
    (descriptor: number, done: fs.NoParamCallback) => {
      const reaches = isOurs(descriptor)
      fdatasync(descriptor, error => {
        if (reaches) reachDisk()
        done(error)
      })
    },
    { __promisify__: fdatasync.__promisify__ },
  )
  syncBuiltinESMExports()
  try {
    await using box = await open(`file:${machine}${query}`)
    await box.store('s').put('key', 'older')
    reachDisk()
    await box.store('s').put('key', 'newest')
    await using found = await open(`file:${disk}`)
    return (await found.store('s').get('key'))?.value
  } finally {
    fs.fdatasync = fdatasync
    syncBuiltinESMExports()
    await rm(machine, { recursive: true })
    await rm(disk, { recursive: true })
  }
}
