import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import {
  refuseNetworkFolder,
  remoteOnLinux,
  remoteOnMacos,
  thisMachine,
} from '../../../../src/engines/file/machine.js'

const EXT4 = 0xef53
const FUSE = 0x65735546

describe('on Linux', () => {
  test.each([
    [0x6969, 'nfs'],
    [0x517b, 'smb'],
    [0xfe534d42, 'smb2'],
    [0xff534d42, 'cifs'],
    [0x01021997, '9p'],
    [0x00c36400, 'ceph'],
    [0x786f4256, 'vboxsf'],
  ])('the number %i is remote: %s', (type, name) => {
    expect(remoteOnLinux(type, '/data', '')).toBe(name)
  })

  test('a number that the kernel gives as a negative one is known, too', () => {
    expect(remoteOnLinux(0xff534d42 - 2 ** 32, '/data', '')).toBe('cifs')
  })

  test('local file systems are fine', () => {
    for (const type of [EXT4, 0x58465342, 0x9123683e, 0x01021994, 0x794c7630]) {
      expect(remoteOnLinux(type, '/data', '')).toBeUndefined()
    }
  })

  const mounts = [
    '22 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw',
    '40 22 0:41 / /mnt rw - fuse.sshfs host:/export rw',
    '41 22 0:42 / /mnt/stick rw - fuseblk /dev/sdb1 rw',
    '42 22 0:43 / /mnt/my\\040disk rw,nosuid shared:9 - fuse.rclone remote: rw',
    '43 22 0:44 / /over rw - fuse.sshfs first: rw',
    '44 43 0:45 / /over rw - fuse.fuse-overlayfs second rw',
  ].join('\n')

  test.each([
    ['/mnt/folder', 'fuse.sshfs'],
    ['/mnt', 'fuse.sshfs'],
    ['/mnt/stick/folder', undefined],
    ['/mnt/sticky', 'fuse.sshfs'],
    ['/mnt/my disk/folder', 'fuse.rclone'],
    ['/over/folder', undefined],
  ])('of FUSE the mount that contains %s decides: %s', (path, name) => {
    expect(remoteOnLinux(FUSE, path, mounts)).toBe(name)
  })

  test('FUSE without a known mount counts as remote', () => {
    expect(remoteOnLinux(FUSE, '/mnt', '')).toBe('fuse')
  })
})

describe('on macOS', () => {
  const mounts = [
    '/dev/disk3s1 on / (apfs, local, journaled)',
    '//user@host/share on /Volumes/share (smbfs, nodev, nosuid, mounted by user)',
    '/dev/disk4s1 on /Volumes/share/stick (one) (msdos, local, nodev)',
  ].join('\n')

  test.each([
    ['/Users/x', undefined],
    ['/Volumes/share', 'smbfs'],
    ['/Volumes/share/x', 'smbfs'],
    ['/Volumes/shared', undefined],
    ['/Volumes/share/stick (one)/x', undefined],
  ])('the mount that contains %s decides: %s', (path, name) => {
    expect(remoteOnMacos(path, mounts)).toBe(name)
  })

  test('a path on no known mount counts as remote', () => {
    expect(remoteOnMacos('/x', '')).toBe('unknown')
  })
})

test('this machine has a boot and namespaces, the same each time, and its folders are its own', async () => {
  const machine = await thisMachine()
  expect(machine.bootId).not.toBe('')
  expect(machine.namespaces).not.toBe('')
  expect(await thisMachine()).toEqual(machine)
  const folder = mkdtempSync(join(tmpdir(), 'signalbox-machine-'))
  await expect(refuseNetworkFolder(folder)).resolves.toBeUndefined()
  rmSync(folder, { recursive: true })
})
