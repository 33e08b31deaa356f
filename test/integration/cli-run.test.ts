import { appendFileSync, existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test, vi } from 'vitest'
import type { Box } from '../../src/index.js'
import { queued } from '../../packages/conformance/src/time.js'
import { startRedis } from '../support/servers/redis.js'
import { CommandPlace, PATIENCE, type End } from './command-line.js'

/** Returns the token of the key's holder, as soon as there is one. */
async function tokenOf(box: Box, key: string): Promise<bigint> {
  return vi.waitFor(async () => {
    for await (const { holders } of box.inspect(key))
      if (holders[0]?.token !== undefined) return holders[0].token
    throw new Error(`${key} has no holder`)
  }, PATIENCE)
}

/** Whether a process is alive. A zombie is not. */
function lives(pid: number): boolean {
  try {
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'))
  } catch {
    return false
  }
}

describe.concurrent('run', () => {
  test('holds its locks, passes the token to the command, and exits with its status', async () => {
    await using place = new CommandPlace()
    const script = 'echo "$SIGNALBOX_TOKEN"; cat go'
    const mkfifo = await place.bash('mkfifo go')
    expect(mkfifo.status).toBe(0)
    const first = place.start('run', '--lock', 'a', '--lock', 'b', '--', 'sh', '-c', `${script}; exit 7`)
    await vi.waitFor(() => expect(first.stdout).toMatch(/\n$/), PATIENCE)

    const { stdout } = await place.signalbox('ls', '--json')
    const reports = stdout
      .trim()
      .split('\n')
      .map(line => JSON.parse(line) as Record<string, unknown>)
    const holder = { label: 'signalbox: sh', token: first.stdout.trim() }
    expect(reports).toMatchObject([
      { key: 'a', holders: [holder] },
      { key: 'b', holders: [holder] },
    ])
    const others = await Promise.all([
      place.signalbox('run', '--lock', 'b', '--skip-if-busy', '--', 'touch', 'skipped'),
      place.signalbox('run', '--lock', 'b', '--wait', '0s', '--', 'touch', 'refused'),
      place.signalbox('run', '--lock', 'b', '--wait', '50ms', '--', 'touch', 'late'),
      place.signalbox('run', '--lock', 'c', '--fence-env', 'FENCE', '--', 'sh', '-c', 'test "$FENCE" -gt 0'),
    ])
    expect(others.map(({ status }) => status)).toEqual([0, 75, 75, 0])
    expect(others.map(({ stderr }) => stderr === '')).toEqual([true, false, false, true])
    expect(['skipped', 'refused', 'late'].filter(name => existsSync(join(place.folder, name)))).toEqual([])
    appendFileSync(join(place.folder, 'go'), 'done\n')
    expect(await first.ended).toMatchObject({ status: 7, stderr: '' })
  })

  test('passes standard input to the command, and reports a command that can not be started', async () => {
    await using place = new CommandPlace()
    const script = 'printf "a\\0b" | "$NODE" "$SIGNALBOX" run --lock a -- cat | od -An -c'
    expect((await place.bash(script)).stdout.trim()).toMatch(/^a +\\0 +b$/)
    const [missing, folder] = await Promise.all([
      place.signalbox('run', '--lock', 'b', '--', 'no-such-command'),
      place.signalbox('run', '--lock', 'c', '--', '/tmp'),
    ])
    expect(missing).toMatchObject({ status: 127, stderr: 'signalbox: command not found: no-such-command\n' })
    expect(folder.status).toBe(126)
  })

  test('passes each signal on once', async () => {
    await using place = new CommandPlace()
    const names = ['USR1', 'HUP', 'QUIT', 'USR2', 'INT'] as const
    const traps = names.map(name => `trap "echo ${name} >> log" ${name}`).join('; ')
    const script = `${traps}; trap "exit 5" TERM; echo up >> log; for turn in $(seq 1000); do sleep 0.05; done`
    const running = place.start('run', '--lock', 'a', '--', 'sh', '-c', script)
    for (const [index, name] of names.entries()) {
      await place.linesCome('log', index + 1)
      running.kill(`SIG${name}`)
    }
    expect(await place.linesCome('log', 1 + names.length)).toEqual(['up', ...names])
    running.kill('SIGTERM')
    expect((await running.ended).status).toBe(5)
  })

  test('does not repeat a Ctrl-C that the terminal sends to the command', async () => {
    await using place = new CommandPlace()
    // The command stops signalbox until it has received SIGINT. Then it causes another signal that signalbox passes on.
    // A duplicate SIGINT would arrive before that signal. The job needs the default handling of SIGINT, because a shell
    // can't trap a signal that was ignored when it started, as in tests that run in the background.
    const job = `trap 'echo told >> log; kill -CONT $PPID; kill -USR1 $PPID' INT
      trap 'echo asked >> log; exit 7' USR1
      kill -STOP $PPID
      echo up >> log
      for turn in $(seq 1000); do sleep 0.05; done`
    writeFileSync(join(place.folder, 'job'), job)
    const { stdout } = await place.bash(`
      come() { for turn in $(seq 1000); do grep -q "$1" log 2> /dev/null && return; sleep 0.05; done; }
      { come up; printf '\\003'; come asked; } |
        timeout 60 env --default-signal=INT script -qec 'trap : INT; "$NODE" "$SIGNALBOX" run --lock a -- sh ./job; exit $?' /dev/null
      echo "status \${PIPESTATUS[1]}"`)
    expect(stdout).toMatch(/status 7\n$/)
    expect(place.lines('log')).toEqual(['up', 'told', 'asked'])
    expect((await place.signalbox('ls', '--json')).stdout).toBe('')
  })

  test('gives up its wait at a signal and leaves nothing behind', async () => {
    await using place = new CommandPlace()
    const box = await place.box('holder')
    await box.mutex('a').acquire()
    const waiting = place.start('run', '--lock', 'a', '--', 'touch', 'ran')
    await queued(box, 'a', 1)
    waiting.kill('SIGTERM')
    expect(await waiting.ended).toEqual({ status: 143, stdout: '', stderr: '' })
    await queued(box, 'a', 0)
    expect(existsSync(join(place.folder, 'ran'))).toBe(false)
  })

  test.each([
    [
      'although the command does not obey',
      '300ms',
      'trap "echo told" TERM; sleep 1000 2> /dev/null & echo $! > child',
    ],
    [
      'also what outlives the command',
      '1h',
      'trap "echo told; exit" TERM; (trap "" TERM; echo "$BASHPID" > child; exec sleep 1000) &',
    ],
  ])('ends all processes that it started when the lock is lost, %s', async (_, grace, begin) => {
    await using place = new CommandPlace()
    const box = await place.box('operator')
    const script = `${begin}\nwhile :; do sleep 0.05; done`
    const running = place.start('run', '--json', '--lock', 'a', '--grace', grace, '--', 'bash', '-c', script)
    const [child] = await place.linesCome('child', 1)
    expect(lives(Number(child))).toBe(true)
    expect(await box.forceRelease('a', await tokenOf(box, 'a'))).toBe(true)
    const { status, stdout, stderr } = await running.ended
    expect({ status, stdout }).toEqual({ status: 76, stdout: 'told\n' })
    const events = [...stderr.matchAll(/^{"event":"(\w+)"/gm)].map(([, event]) => event)
    expect(events).toEqual(['granted', 'lost', 'ended'])
    await vi.waitFor(() => expect(lives(Number(child))).toBe(false), PATIENCE)
  })

  test('runs at the same time as others with --shared and with --permits', async () => {
    await using place = new CommandPlace()
    const box = await place.box('holder')
    await using _reader = await box.readWriteLock('a').read.acquire()
    await using _permit = await box.semaphore('b', { max: 2 }).acquire()
    const ends = await Promise.all([
      place.signalbox('run', '--lock', 'a', '--shared', '--wait', '0s', '--', 'true'),
      place.signalbox('run', '--lock', 'a', '--wait', '0s', '--', 'true'),
      place.signalbox('run', '--lock', 'b', '--permits', '1/2', '--wait', '0s', '--', 'true'),
      place.signalbox('run', '--lock', 'b', '--permits', '2/2', '--wait', '0s', '--', 'true'),
      place.signalbox('run', '--lock', 'b', '--permits', '1-2', '--', 'true'),
      place.signalbox('run', '--lock', 'b', '--permits', '1/2', '--shared', '--', 'true'),
    ])
    expect(ends.map(({ status }) => status)).toEqual([0, 75, 0, 75, 2, 2])
  })

  test('runs a successful command once a slot', async () => {
    await using place = new CommandPlace()
    const once = (slot: string, script: string): Promise<{ status: number | null }> =>
      place.signalbox('run', '--lock', 'job', '--once-per', slot, '--', 'sh', '-c', script)
    expect((await once('monday', 'echo failed >> log; exit 3')).status).toBe(3)
    const crowd = await Promise.all([1, 2, 3].map(() => once('monday', 'echo monday >> log')))
    expect(crowd.map(({ status }) => status)).toEqual([0, 0, 0])
    expect((await once('tuesday', 'echo tuesday >> log')).status).toBe(0)
    // This slot of a thousand days does not end during the test.
    await once('1000d', 'echo period >> log')
    await once('1000d', 'echo period >> log')
    expect(place.lines('log')).toEqual(['failed', 'monday', 'tuesday', 'period'])
  })

  test.each([[], ['--once-per', 'monday']])(
    'ends with the status of the command when its locks can not be given back (%s)',
    async (...options) => {
      await using server = await startRedis()
      await using place = new CommandPlace(server.url)
      const script = 'echo begun >> log; while [ ! -e go ]; do sleep 0.05; done'
      const running = place.start('run', '--lock', 'job', ...options, '--', 'sh', '-c', script)
      await place.linesCome('log', 1)
      await server.kill()
      writeFileSync(join(place.folder, 'go'), '')
      const { status, stderr } = await running.ended
      expect(stderr).toContain('the command has run; its locks expire with their lease')
      if (options.length > 0) expect(stderr).toContain('may run again for its slot')
      expect(status).toBe(0)
    },
  )
})

describe.concurrent('lead', () => {
  test('keeps one copy running, also when its runner is killed or ended', async () => {
    await using place = new CommandPlace()
    const script = 'echo "$SIGNALBOX_TOKEN $$ $PPID" >> log; exec sleep 1000 > /dev/null 2>&1'
    const fleet = [1, 2, 3].map(() => place.start('lead', 'job', '--', 'sh', '-c', script))
    const leaders: { token: bigint; command: number }[] = []
    try {
      for (const signal of ['SIGKILL', 'SIGTERM', 'SIGTERM'] as const) {
        const lines = await place.linesCome('log', leaders.length + 1)
        expect(lines).toHaveLength(leaders.length + 1)
        const [token = '', command = '', parent = ''] = lines.at(-1)!.split(' ')
        leaders.push({ token: BigInt(token), command: Number(command) })
        const leader = fleet.find(({ pid }) => pid === Number(parent))!
        leader.kill(signal)
        const { status } = await leader.ended
        expect(status).toBe(signal === 'SIGTERM' ? 143 : null)
      }
    } finally {
      // The command of the leader that was killed is still running.
      if (leaders[0]) process.kill(leaders[0].command, 'SIGKILL')
    }
    expect(leaders[1]!.token).toBeGreaterThan(leaders[0]!.token)
    expect(leaders[2]!.token).toBeGreaterThan(leaders[1]!.token)
  })

  test('restarts the command after its end, and waits while another process leads', async () => {
    await using place = new CommandPlace()
    const box = await place.box('operator')
    const running = place.start('lead', 'job', '--', 'sh', '-c', 'echo up >> log')
    await place.linesCome('log', 2)
    const grant = await box.election('job').campaign()
    await queued(box, 'election:job', 1)
    running.kill('SIGTERM')
    expect(await running.ended).toMatchObject({ status: 143, stdout: '' })
    await grant.release()
  })
})

describe.concurrent('limit', () => {
  test('keeps all processes together within the rate', async () => {
    await using place = new CommandPlace()
    const limit = (...argv: string[]): Promise<End> => place.signalbox('limit', 'api', '--rate', ...argv)
    const command = ['--wait', '0s', '--', 'sh', '-c', 'echo ran; exit 4']
    const ends = await Promise.all([1, 2, 3, 4].map(() => limit('2/h', ...command)))
    expect(ends.map(({ status }) => status).sort()).toEqual([4, 4, 75, 75])
    expect(ends.map(({ stdout }) => stdout).join('')).toBe('ran\nran\n')
    const usage = await Promise.all([
      limit('2/h'),
      limit('2/h', '--per-line', '--', 'true'),
      limit('2', '--', 'true'),
    ])
    expect(usage.map(({ status }) => status)).toEqual([2, 2, 2])
  })

  test('lets lines through at the rate, byte for byte', async () => {
    await using place = new CommandPlace()
    const filter = '"$NODE" "$SIGNALBOX" limit lines --per-line --rate'
    const started = performance.now()
    const [slow, exact, head] = await Promise.all([
      place.bash(`printf '1\\n2\\n3\\n4\\n5\\n' | ${filter} 2/200ms`),
      place.bash(`printf 'a\\n\\n\\377\\0b' | ${filter.replace('lines', 'exact')} 1000/s | od -An -to1`),
      place.bash(`yes | ${filter.replace('lines', 'head')} 1000/s | head -n 2; echo "\${PIPESTATUS[1]}"`),
    ])
    // Two lines pass immediately, two a window later, and the last one another window later.
    expect(performance.now() - started).toBeGreaterThan(400)
    expect(slow).toEqual({ status: 0, stdout: '1\n2\n3\n4\n5\n', stderr: '' })
    expect(exact.stdout.trim()).toBe('141 012 012 377 000 142')
    expect(head).toEqual({ status: 0, stdout: 'y\ny\n0\n', stderr: '' })
  })

  test('reports events as JSON on standard error', async () => {
    await using place = new CommandPlace()
    const rate = ['--rate', '10/s', '--json']
    const ran = await place.signalbox('limit', 'api', ...rate, '--', 'sh', '-c', 'echo ran; exit 4')
    expect(ran).toMatchObject({ status: 4, stdout: 'ran\n' })
    const events = ran.stderr.trim().split('\n')
    expect(events.map(event => JSON.parse(event) as unknown)).toEqual([
      { event: 'granted', name: 'api', waited: expect.any(Number) as number },
      { event: 'ended', status: 4 },
    ])
    const filter = `"$NODE" "$SIGNALBOX" limit lines --per-line ${rate.join(' ')}`
    const filtered = await place.bash(`printf 'a\\nb\\n' | ${filter}`)
    expect(filtered).toMatchObject({ status: 0, stdout: 'a\nb\n' })
    expect(JSON.parse(filtered.stderr)).toEqual({ event: 'ended', name: 'lines', lines: 2 })
  })
})
