/** A lock file that prevents two commands from installing or building at the same time. */
import { linkSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'

const patience = 15 * 60_000

/**
 * Runs `work` while this process holds the lock file. Takes the lock over if its process is dead.
 * @param {string} path path of the lock file
 * @param {() => void} work
 */
export function withLock(path, work) {
  const own = `${path}.${process.pid}`
  writeFileSync(own, String(process.pid))
  try {
    const start = Date.now()
    let reported = false
    while (!acquire(path, own)) {
      const waited = Date.now() - start
      if (!reported && waited > 2000) {
        process.stderr.write('setup: waiting for another setup to finish ...\n')
        reported = true
      }
      if (waited > patience)
        throw new Error(`Waited too long for another setup; if none runs, delete ${path}`)
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 100)
    }
    try {
      work()
    } finally {
      rmSync(path, { force: true })
    }
  } finally {
    rmSync(own, { force: true })
  }
}

/**
 * @param {string} path
 * @param {string} own path of a file that contains the ID of this process
 */
function acquire(path, own) {
  if (link(own, path)) return true
  const holder = read(path)
  if (holder === undefined || isHeld(Number(holder))) return false
  // If several processes find the same dead holder, only the one whose link succeeds may replace the lock.
  const succession = `${path}.after-${holder}`
  if (!link(own, succession)) return false
  try {
    if (read(path) !== holder) return false
    const replacement = `${own}.replacement`
    writeFileSync(replacement, String(process.pid))
    renameSync(replacement, path)
    return true
  } finally {
    rmSync(succession, { force: true })
  }
}

/**
 * @param {string} from
 * @param {string} to
 */
function link(from, to) {
  try {
    linkSync(from, to)
    return true
  } catch (error) {
    if (/** @type {NodeJS.ErrnoException} */ (error).code === 'EEXIST') return false
    throw error
  }
}

/** @param {string} path */
function read(path) {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    if (/** @type {NodeJS.ErrnoException} */ (error).code === 'ENOENT') return undefined
    throw error
  }
}

/** @param {number} pid */
function isHeld(pid) {
  // Containers reuse process IDs. This process does not hold the lock yet, so a lock with its ID belongs to a dead
  // process.
  if (pid === process.pid) return false
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return /** @type {NodeJS.ErrnoException} */ (error).code !== 'ESRCH'
  }
}
