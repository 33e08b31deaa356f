import { readFileSync, rmSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { expect, test } from 'vitest'
import { open } from '../../src/open.js'
import {
  AuthFailedError,
  CREATOR_ACL,
  InvalidArgumentError,
  NoAuthError,
  UnreachableError,
  ZooKeeper,
} from 'signalbox-zookeeper'
import { makeCertificate } from '../support/servers/certificate.js'
import { runProgram } from '../support/run-program.js'
import { freePort } from '../../apps/chaos/servers/free-port.js'
import { Proxy } from '../../apps/chaos/servers/proxy.js'
import { until } from '../support/servers/until.js'
import { startZooKeeper } from '../support/servers/zookeeper.js'
import { program, Running } from './command-line.js'

const root = fileURLToPath(new URL('../../', import.meta.url))

test('the client uses TLS, and trusts only the given certificates', async () => {
  const { folder, certificate, key } = makeCertificate()
  const ca = readFileSync(certificate)
  const secure = await freePort()
  try {
    await using server = await startZooKeeper({
      config: [`secureClientPort=${secure}`, 'secureClientPortAddress=127.0.0.1'],
      properties: {
        'zookeeper.serverCnxnFactory': 'org.apache.zookeeper.server.NettyServerCnxnFactory',
        'zookeeper.ssl.keyStore.location': 'server.pem',
        'zookeeper.ssl.keyStore.type': 'PEM',
        'zookeeper.ssl.clientAuth': 'none',
      },
      files: { 'server.pem': `${readFileSync(key, 'utf8')}${ca.toString()}` },
    })
    const address = `127.0.0.1:${secure}`
    await using zk = await ZooKeeper.connect(address, { tls: { ca, servername: 'localhost' } })
    const data = Buffer.alloc(300_000, 'abc')
    await zk.create('/a', data)
    expect((await zk.getData('/a')).data.equals(data)).toBe(true)
    await using plain = await ZooKeeper.connect(server.address)
    expect((await plain.getData('/a')).stat.dataLength).toBe(data.length)
    const stranger = ZooKeeper.connect(address, { tls: {}, timeout: 500 })
    await expect(stranger).rejects.toThrow(UnreachableError)
    await expect(stranger).rejects.toThrow(/certificate/)
    await expect(ZooKeeper.connect(address, { timeout: 500 })).rejects.toThrow(UnreachableError)
    // Starts a process with the certificate, because Node reads the trusted certificates when it starts.
    const trusting = [`NODE_EXTRA_CA_CERTS=${certificate}`, process.execPath, '--input-type=module', '-e']
    const opening = `
      import { open } from 'signalbox'
      const box = await open('zookeeper+tls://localhost:${secure}/app')
      await box.mutex('key').run(grant => console.log(grant.expiresIn() > 0))
      await box.close()`
    const { stdout } = await runProgram('env', [...trusting, opening], { cwd: root, timeLimit: 30_000 })
    expect(stdout).toBe('true\n')
    const place = `zookeeper+tls://localhost:${secure}/app`
    const doctor = [program, 'doctor', '--json', '--engine', place]
    const examined = await new Running(process.execPath, doctor, root, { NODE_EXTRA_CA_CERTS: certificate })
      .ended
    const { facts, findings } = JSON.parse(examined.stdout) as { facts: string[]; findings: { id: string }[] }
    expect(facts[0]).toMatch(new RegExp(`^localhost:${secure}: ZooKeeper 3.*, standalone$`))
    expect(findings.map(({ id }) => id)).toContain('single-server')
    expect(await zk.exists('/app/locks')).toBeDefined()
    await using named = await ZooKeeper.connect(`localhost:${secure}`, { tls: { ca } })
    expect(named.state).toBe('connected')
    const other = ZooKeeper.connect(address, { tls: { ca, servername: 'other.example' }, timeout: 500 })
    await expect(other).rejects.toThrow(/other\.example/)
  } finally {
    rmSync(folder, { recursive: true })
  }
})

test('the client authenticates by SASL with each server that it connects to', async () => {
  const users = String.raw`user_ann="it's \"secret\"" user_bob="geheim-ä"`
  await using server = await startZooKeeper({
    properties: {
      'java.security.auth.login.config': 'jaas.conf',
      'zookeeper.authProvider.1': 'org.apache.zookeeper.server.auth.SASLAuthenticationProvider',
      'zookeeper.enforce.auth.enabled': 'true',
      'zookeeper.enforce.auth.schemes': 'sasl',
      'file.encoding': 'UTF-8',
    },
    files: {
      'jaas.conf': `Server { org.apache.zookeeper.server.auth.DigestLoginModule required ${users}; };\n`,
    },
  })
  const ann = { user: 'ann', password: 'it\'s "secret"' }
  await using proxy = await Proxy.start(server.port)
  await using zk = await ZooKeeper.connect(`127.0.0.1:${proxy.port}`, { sasl: ann })
  await zk.create('/mine', 'data', { acl: CREATOR_ACL })
  expect((await zk.getAcl('/mine')).acl).toEqual([{ permissions: 31, scheme: 'sasl', id: 'ann' }])
  const states: string[] = []
  zk.onState(state => states.push(state))
  proxy.cut()
  await until(() => states.includes('connected'))
  expect((await zk.getData('/mine')).data.toString()).toBe('data')
  await using bob = await ZooKeeper.connect(server.address, { sasl: { user: 'bob', password: 'geheim-ä' } })
  await expect(bob.getData('/mine')).rejects.toThrow(NoAuthError)
  for (const sasl of [
    { user: 'ann', password: 'wrong' },
    { user: 'nobody', password: 'secret' },
  ]) {
    const refused = ZooKeeper.connect(server.address, { sasl, timeout: '30s' })
    await expect(refused).rejects.toMatchObject({
      code: 'UNREACHABLE',
      cause: expect.any(AuthFailedError) as unknown,
    })
  }
  await expect(ZooKeeper.connect(server.address, { sasl: { user: '', password: 'x' } })).rejects.toThrow(
    InvalidArgumentError,
  )
  const place = (login: string) => `zookeeper://${login}${server.address}/boxes?auth=sasl&acl=creator`
  await using box = await open(place('ann:it%27s%20%22secret%22@'))
  await box.mutex('key').run(grant => grant.assertHeld())
  expect((await zk.getAcl('/boxes/locks')).acl).toEqual([{ permissions: 31, scheme: 'sasl', id: 'ann' }])
  await expect(open(place('bob:geheim-%C3%A4@'))).rejects.toThrow(/ACL/)
  await expect(open(place('ann:wrong@'))).rejects.toMatchObject({
    code: 'UNAVAILABLE',
    cause: { code: 'UNREACHABLE', cause: expect.any(AuthFailedError) as unknown },
  })
  // A server that requires SASL ends the session of a client that sends a request without authenticating.
  await using stranger = await ZooKeeper.connect(server.address, { sessionTimeout: 2000 })
  await expect(stranger.create('/other')).rejects.toThrow()
})

test('a server without SASL is rejected at once', async () => {
  await using server = await startZooKeeper()
  const sasl = { user: 'ann', password: 'secret' }
  const refused = ZooKeeper.connect(server.address, { sasl, timeout: '30s' })
  await expect(refused).rejects.toMatchObject({ cause: expect.any(AuthFailedError) as unknown })
})
