import { linkSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { systemClock } from '../../../../src/base/clock.js'
import { loadSqlite, type Sqlite } from '../../../../src/engines/file/driver.js'
import { DATABASE, OPEN_LOCK } from '../../../../src/engines/file/folder.js'
import { OpenLock } from '../../../../src/engines/file/open-lock.js'
import { openDatabase } from '../../../../src/engines/file/prepare.js'

const MACHINE = { bootId: 'boot', namespaces: 'namespaces' }

/**
 * Creates a folder with a box in it, and a file that the test removes as the last box would: SQLite then deletes its
 * files.
 */
async function scene() {
  const folder = mkdtempSync(join(tmpdir(), 'signalbox-prepare-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  const sqlite = await loadSqlite()
  const enter = async (its: Sqlite = sqlite) => {
    const box = await openDatabase(its, folder, MACHINE, systemClock)
    onTestFinished(async () => {
      box.openLock.leave()
      await box.database.close()
    })
    return box
  }
  const first = await OpenLock.enter(sqlite, folder, systemClock)
  const path = join(folder, `${DATABASE}-shm`)
  writeFileSync(path, '')
  // A second name keeps the file, so that no new file gets its number.
  linkSync(path, join(folder, 'kept'))
  const { dev: device, ino: inode } = statSync(path)
  first.note([{ path, device, inode }])
  await first.stay()
  onTestFinished(() => first.leave())
  const remove = (): void => rmSync(path)
  const leave = (): void => {
    first.leave()
    remove()
  }
  return { sqlite, enter, remove, leave }
}

test.for([
  ['has entered', OPEN_LOCK, 'begin immediate'],
  ['opens the database', DATABASE, undefined],
])('a box opens a folder although the last one in it leaves when it %s', async ([, file, statement]) => {
  const { sqlite, enter, leave } = await scene()
  let isLeft = false
  const leaveOnce = (): void => {
    if (!isLeft) leave()
    isLeft = true
  }
  const second = await enter({
    ...sqlite,
    open(path) {
      const isMeant = path.endsWith(file!)
      if (isMeant && !statement) leaveOnce()
      const connection = sqlite.open(path)
      const exec = (sql: string): void => {
        connection.exec(sql)
        if (isMeant && sql === statement) leaveOnce()
      }
      return new Proxy(connection, {
        get: (_, name) => {
          if (name === 'exec') return exec
          const value = Reflect.get(connection, name) as unknown
          return typeof value === 'function' ? value.bind(connection) : value
        },
      })
    },
  })
  expect(isLeft).toBe(true)
  // The next box finds the files of the second box, and not the deleted ones.
  const third = await enter()
  expect([second.openLock.foundEmpty, third.openLock.foundEmpty]).toEqual([true, false])
})

test('a box refuses a folder whose files were deleted while another one is inside', async () => {
  const { enter, remove } = await scene()
  remove()
  await expect(enter()).rejects.toThrow('was deleted, moved or replaced while boxes use it')
})
