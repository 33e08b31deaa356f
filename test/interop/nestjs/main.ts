import { Module, type DynamicModule } from '@nestjs/common'
import { APP_FILTER, NestFactory } from '@nestjs/core'
import { ExpressAdapter } from '@nestjs/platform-express'
import { FastifyAdapter } from '@nestjs/platform-fastify'
import type { Box } from 'signalbox'
import { consoleOf } from 'signalbox-console'
import { BOX, SignalboxExceptionFilter, SignalboxModule, type SignalboxModuleOptions } from 'signalbox-nestjs'
import { GatewaysModule } from './gateways.js'
import { HealthModule } from './health.js'
import { JobsModule } from './jobs.js'
import { LimitsModule } from './limits.js'
import { LocksModule } from './locks.js'
import { connectMicroservice, MicroserviceModule } from './microservice.js'
import { report, setting } from './setting.js'

const { platform, source, drain, jobs = false, gateways = false, graphql = false, rpcPort } = setting

@Module({ providers: [{ provide: 'source', useValue: source }], exports: ['source'] })
class ConfigModule {}

/** Loads Apollo only in applications that use it, because loading takes a while. */
async function graphqlModule(): Promise<DynamicModule> {
  const { GraphqlModule } = await import('./graphql.js')
  return { module: GraphqlModule }
}

const options: Omit<SignalboxModuleOptions, 'source'> = { label: 'nest', drain }
const signalbox =
  platform === 'express'
    ? SignalboxModule.forRoot({ source, ...options })
    : SignalboxModule.forRootAsync({
        imports: [ConfigModule],
        inject: ['source'],
        useFactory: (from: string) => ({ source: from, ...options }),
      })

@Module({
  imports: [
    LocksModule,
    LimitsModule,
    HealthModule,
    ...(jobs ? [JobsModule] : []),
    ...(gateways ? [GatewaysModule] : []),
    ...(graphql ? [graphqlModule()] : []),
    ...(rpcPort === undefined ? [] : [MicroserviceModule]),
    signalbox,
  ],
  providers: [{ provide: APP_FILTER, useClass: SignalboxExceptionFilter }],
})
class ApplicationModule {}

async function start(): Promise<void> {
  const adapter = platform === 'express' ? new ExpressAdapter() : new FastifyAdapter()
  const application = await NestFactory.create(ApplicationModule, adapter, { logger: ['error', 'warn'] })
  application.enableShutdownHooks()
  const locks = consoleOf(application.get<Box>(BOX), { log: () => undefined })
  application.use('/admin/locks', locks.node)
  if (rpcPort !== undefined) await connectMicroservice(application)
  await application.listen(0, '127.0.0.1')
  const { port } = application.getHttpServer().address() as { readonly port: number }
  report({ port })
}

void start()
