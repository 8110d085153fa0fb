"""What a Kustomize render must be, beyond what kubectl accepts. Each check yields sentences about faults."""

import re
import subprocess

import kubernetes_validate
import yaml

SCHEMA_VERSION = '1.32'
DRAIN_MARGIN_SECONDS = 10


def render(folder):
    text = subprocess.run(['kubectl', 'kustomize', folder], check=True, capture_output=True, text=True).stdout
    return [doc for doc in yaml.safe_load_all(text) if doc]


def name_of(doc):
    return f"{doc['kind']}/{doc['metadata']['name']}"


def check_schemas(docs):
    for doc in docs:
        try:
            kubernetes_validate.validate(doc, SCHEMA_VERSION, strict=True)
        except kubernetes_validate.ValidationError as error:
            yield f'{name_of(doc)}: {".".join(str(p) for p in error.path)}: {error.message}'


def workloads(docs):
    return [d for d in docs if d['kind'] in ('Deployment', 'StatefulSet', 'DaemonSet', 'Job')]


def pod_of(doc):
    return doc['spec']['template']['spec']


def containers(docs):
    for doc in workloads(docs):
        for container in pod_of(doc)['containers']:
            yield doc, container


def check_security(docs):
    """The restricted Pod Security Standard, and a root file system that stays as it was built."""
    for doc in workloads(docs):
        pod = pod_of(doc).get('securityContext', {})
        if not pod.get('runAsNonRoot') or not pod.get('runAsUser'):
            yield f'{name_of(doc)}: the pod does not run as a numbered user that is not root'
        if pod.get('seccompProfile', {}).get('type') != 'RuntimeDefault':
            yield f'{name_of(doc)}: no RuntimeDefault seccomp profile'
        if pod_of(doc).get('automountServiceAccountToken') is not False:
            yield f'{name_of(doc)}: mounts a service account token that nothing uses'
    for doc, container in containers(docs):
        context = container.get('securityContext', {})
        if context.get('allowPrivilegeEscalation') is not False:
            yield f'{name_of(doc)}: allows privilege escalation'
        if context.get('capabilities', {}).get('drop') != ['ALL']:
            yield f'{name_of(doc)}: keeps capabilities'
        if not context.get('readOnlyRootFilesystem'):
            yield f'{name_of(doc)}: the root file system can be written'


def check_resources(docs):
    for doc, container in containers(docs):
        resources = container.get('resources', {})
        for kind in ('requests', 'limits'):
            for amount in ('cpu', 'memory'):
                if amount not in resources.get(kind, {}):
                    yield f'{name_of(doc)}: no {kind}.{amount}'


def check_images(docs):
    for doc, container in containers(docs):
        if not re.search(r':[\w.-]+$', container['image']) or container['image'].endswith(':latest'):
            yield f'{name_of(doc)}: image {container["image"]} has no fixed tag'


def check_probes(docs):
    """gRPC health probes on the port served; readiness asks for the service, liveness for the process."""
    for doc, container in containers(docs):
        ports = {p['containerPort'] for p in container.get('ports', [])}
        for kind in ('startupProbe', 'readinessProbe', 'livenessProbe'):
            grpc = container.get(kind, {}).get('grpc')
            if not grpc or grpc['port'] not in ports:
                yield f'{name_of(doc)}: {kind} is no gRPC probe of a port of the container'
            elif bool(grpc.get('service')) != (kind == 'readinessProbe'):
                yield f'{name_of(doc)}: {kind} asks for {grpc.get("service") or "the process"}'


def environment(docs, container):
    """Names and values, with those of config maps looked up; a fieldRef is its path."""
    maps = {d['metadata']['name']: d['data'] for d in docs if d['kind'] == 'ConfigMap'}
    values = {}
    for entry in container.get('env', []):
        source = entry.get('valueFrom', {})
        if 'configMapKeyRef' in source:
            reference = source['configMapKeyRef']
            values[entry['name']] = maps[reference['name']][reference['key']]
        else:
            values[entry['name']] = entry.get('value', source.get('fieldRef', {}).get('fieldPath', ''))
    return values


def arguments(docs, container):
    """The flags of a container's command, with the environment put in: {'--listen': '0.0.0.0:7450'}."""
    values = environment(docs, container)
    flags = {}
    for argument in container.get('args', []):
        name, _, value = re.sub(r'\$\((\w+)\)', lambda m: values[m.group(1)], argument).partition('=')
        flags[name] = value
    return flags


def check_drain(docs):
    for doc, container in containers(docs):
        flags = arguments(docs, container)
        killed = pod_of(doc).get('terminationGracePeriodSeconds', 30)
        if not flags.get('--drain-seconds', '').isdigit():
            yield f'{name_of(doc)}: --drain-seconds is not given'
            continue
        drain = int(flags['--drain-seconds']) + int(flags.get('--grace-seconds', '0'))
        if killed < drain + DRAIN_MARGIN_SECONDS:
            yield f'{name_of(doc)}: killed after {killed} s, but draining takes {drain} s and a margin'


def check_selectors(docs):
    """Services, budgets and policies select pods that exist; each workload has a service and a policy."""
    pods = {name_of(d): d['spec']['template']['metadata']['labels'] for d in workloads(docs)}
    selected = {'Service': set(), 'NetworkPolicy': set()}
    for doc in docs:
        if doc['kind'] == 'Service':
            selector = doc['spec']['selector']
        elif doc['kind'] == 'PodDisruptionBudget':
            selector = doc['spec']['selector']['matchLabels']
        elif doc['kind'] == 'NetworkPolicy':
            selector = doc['spec']['podSelector']['matchLabels']
        else:
            continue
        hits = {name for name, labels in pods.items() if selector.items() <= labels.items()}
        selected.setdefault(doc['kind'], set()).update(hits)
        if not hits:
            yield f'{name_of(doc)}: selects no pod'
    for kind in ('Service', 'NetworkPolicy'):
        for name in sorted(set(pods) - selected[kind]):
            yield f'{name}: no {kind} selects it'
    services = {d['metadata']['name']: d['spec'] for d in docs if d['kind'] == 'Service'}
    for doc in docs:
        if doc['kind'] == 'StatefulSet' and services.get(doc['spec']['serviceName'], {}).get('clusterIP') != 'None':
            yield f'{name_of(doc)}: serviceName names no headless service'


def check_flags(docs, known):
    """`known`: image name -> the flags that its program's --help lists."""
    for doc, container in containers(docs):
        image = container['image'].split(':')[0]
        for flag in arguments(docs, container):
            if flag not in known.get(image, ()):
                yield f'{name_of(doc)}: {image} --help does not list {flag}'


CHECKS = (check_schemas, check_security, check_resources, check_images, check_probes, check_drain, check_selectors)


def faults(docs):
    return [fault for check in CHECKS for fault in check(docs)]
