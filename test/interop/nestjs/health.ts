import { Controller, Get, Module } from '@nestjs/common'
import { HealthCheck, HealthCheckService, TerminusModule, type HealthCheckResult } from '@nestjs/terminus'
import { SignalboxHealthIndicator } from 'signalbox-nestjs'

@Controller('health')
class HealthController {
  constructor(
    private readonly health: HealthCheckService,
    private readonly signalbox: SignalboxHealthIndicator,
  ) {}

  @Get()
  @HealthCheck()
  async check(): Promise<HealthCheckResult> {
    return this.health.check([() => this.signalbox.pingCheck('signalbox')])
  }
}

@Module({ imports: [TerminusModule.forRoot({ logger: false })], controllers: [HealthController] })
export class HealthModule {}
