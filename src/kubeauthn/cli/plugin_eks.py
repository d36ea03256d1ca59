"""The token that an Amazon EKS cluster takes, as `aws eks get-token` makes it, without the AWS command line.

    kubeauthn plugin eks --cluster-name prod --region eu-west-1

AWS credentials are found as every AWS program finds them. Wrap it with `kubeauthn plugin cache --` to save its start.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

    from kubeauthn.cli.world import World

HELP = "the token that an Amazon EKS cluster takes"


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--cluster-name", required=True, metavar="NAME", help="the cluster that the token is for")
    parser.add_argument("--region", default="", help="the cluster's region; otherwise as the environment says")
    parser.add_argument("--profile", default="", help="the AWS profile; otherwise as the environment says")
    parser.add_argument("--role-arn", default="", metavar="ARN", help="a role to take on for the token")
    parser.add_argument(
        "--session-name", default="kubeauthn", metavar="NAME", help="what CloudTrail shows for that role (kubeauthn)"
    )
    parser.add_argument("--endpoint-url", default="", metavar="URL", help="another address of STS, such as a VPC's own")


def run(arguments: Namespace, world: World) -> int:
    from kubeauthn.plugin import credential
    from kubeauthn.plugins.eks import Settings, credential_function

    settings = Settings(
        cluster_name=arguments.cluster_name,
        region=arguments.region,
        profile=arguments.profile,
        role_arn=arguments.role_arn,
        session_name=arguments.session_name,
        endpoint_url=arguments.endpoint_url,
    )
    credential.run(credential_function(settings))
