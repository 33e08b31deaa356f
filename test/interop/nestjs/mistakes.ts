/** Prints the errors that mistakes in the use of the adapter cause. Needs no server. */
import { Injectable, Module } from '@nestjs/common'
import { NestFactory } from '@nestjs/core'
import { Locked, OncePerFleet, SignalboxModule } from 'signalbox-nestjs'

const first = Symbol('job')
const second = Symbol('job')

@Injectable()
class Jobs {
  @OncePerFleet('1d')
  async [first](): Promise<void> {}

  @OncePerFleet('1d')
  async [second](): Promise<void> {}

  /** Calls a locked method before Nest has injected the box. */
  readonly early = this.locked()

  @Locked('door')
  async locked(): Promise<void> {}
}

@Module({ imports: [SignalboxModule.forRoot({ source: 'memory:' })], providers: [Jobs] })
class ApplicationModule {}

@Module({ imports: [SignalboxModule.forRootAsync({ useFactory: () => undefined as never })] })
class WithoutOptionsModule {}

const messageOf = (error: unknown): string => (error as Error).message
const quiet = { logger: false, abortOnError: false } as const

async function start(): Promise<void> {
  const application = await NestFactory.createApplicationContext(ApplicationModule, quiet)
  const jobs = application.get(Jobs)
  console.log(await jobs.early.catch(messageOf))
  await jobs[first]()
  console.log(await jobs[second]().catch(messageOf))
  await application.close()
  console.log(await NestFactory.createApplicationContext(WithoutOptionsModule, quiet).catch(messageOf))
}

void start()
