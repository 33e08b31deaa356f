import { statSync } from 'node:fs'
import { stat, statfs } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { FILES, TRUST_ADVICE, untrustedIn } from './folder.js'
import { databaseOf } from './open.js'
import type { Diagnosis, Finding } from '../../engine/diagnosis.js'

/** Type numbers of the file systems in memory on Linux: tmpfs and ramfs. */
const IN_MEMORY: readonly number[] = [0x01021994, 0x858458f6]
/** Minimum free space, in bytes: the write-ahead log can grow to this size. */
const MIN_FREE = 64 * 2 ** 20
const MEBIBYTE = 2 ** 20

const OTHERS_ENTER = 0o001
const OTHERS = 0o007

/** Diagnoses the folder of a `file:` URL. @throws the errors of the file system. */
export async function diagnoseFile(url: string): Promise<Diagnosis> {
  const folder = dirname(databaseOf(url))
  const [{ mode }, { type, bavail, bsize }] = await Promise.all([stat(folder), statfs(folder)])
  const free = bavail * bsize
  const findings: Finding[] = []
  if (new URLSearchParams(url.split('?')[1]).get('durable') === 'false') {
    findings.push({
      id: 'not-durable',
      promises: ['P13'],
      how: 'the URL says durable=false, so a power cut can lose the newest commits',
      fix: 'remove durable=false from the URL',
    })
  }
  if (process.platform === 'linux' && IN_MEMORY.includes(type)) {
    findings.push({
      id: 'in-memory',
      promises: ['P13'],
      how: `${folder} is on a file system in memory, so a restart of the machine loses everything in it`,
      fix: 'use a folder on a disk',
    })
  }
  const untrusted = await untrustedIn(folder)
  if (untrusted !== undefined) {
    findings.push({
      id: 'untrusted-folder',
      promises: ['P1', 'P13'],
      how: `the folder is not safe, so \`open\` fails: ${untrusted}`,
      fix: TRUST_ADVICE,
    })
  }
  const open = (mode & OTHERS_ENTER) === 0 ? [] : openToOthers(folder)
  if (open.length > 0) {
    findings.push({
      id: 'open-to-all',
      promises: ['P9', 'P12'],
      how: `every user of the machine can open ${open.join(', ')}: they can read its contents, or block all boxes with a file lock`,
      fix: `chmod o= ${folder}, or open a box as the owner of the files, which restricts them`,
    })
  }
  if (free < MIN_FREE) {
    findings.push({
      id: 'disk-full',
      promises: [],
      how: `only ${Math.floor(free / MEBIBYTE)} MiB are free on the disk of ${folder}; when it is full, every operation fails`,
      fix: 'free disk space',
    })
  }
  return { facts: [`${folder}: ${Math.floor(free / MEBIBYTE)} MiB free, Node ${process.version}`], findings }
}

/** The files that users other than the owner and the group can open. */
function openToOthers(folder: string): string[] {
  const paths = FILES.map(file => join(folder, file))
  return paths.filter(path => {
    try {
      return (statSync(path).mode & OTHERS) !== 0
    } catch {
      return false
    }
  })
}
