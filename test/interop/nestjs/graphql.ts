import { ApolloDriver, type ApolloDriverConfig } from '@nestjs/apollo'
import { Module } from '@nestjs/common'
import {
  Args,
  Field,
  GraphQLModule,
  ObjectType,
  Parent,
  Query,
  ResolveField,
  Resolver,
} from '@nestjs/graphql'
import type { Grant } from 'signalbox'
import { CurrentGrant, Locked } from 'signalbox-nestjs'
import { letGo } from './setting.js'

@ObjectType()
class Door {
  @Field()
  name!: string
}

@Resolver(() => Door)
class DoorResolver {
  @Query(() => Door)
  door(@Args('name') name: string): Door {
    return { name }
  }

  @ResolveField(() => String)
  @Locked((door: Door) => door.name, { wait: 0 })
  async visitor(@Parent() door: Door, @CurrentGrant() grant?: Grant): Promise<string> {
    return `${door.name} under ${grant!.keys.join()}`
  }

  @Query(() => String)
  @Locked((key: string) => key, { wait: 0 })
  async busy(@Args('key') key: string): Promise<string> {
    return key
  }

  @Locked((key: string) => key)
  @Query(() => [String])
  async wait(@Args('key') key: string, @CurrentGrant() grant?: Grant): Promise<readonly string[]> {
    return [key, ...grant!.keys]
  }

  @Query(() => [String])
  @Locked((key: string) => key)
  async hold(@Args('key') key: string, @CurrentGrant() grant?: Grant): Promise<readonly string[]> {
    await letGo(key)
    return grant!.keys
  }

  @Query(() => String)
  @Locked('')
  async invalid(): Promise<string> {
    return ''
  }
}

@Module({
  imports: [
    GraphQLModule.forRoot<ApolloDriverConfig>({
      driver: ApolloDriver,
      autoSchemaFile: true,
      playground: false,
      // Without this option, Nest applies no filters to the fields of an object.
      fieldResolverEnhancers: ['filters'],
    }),
  ],
  providers: [DoorResolver],
})
export class GraphqlModule {}
